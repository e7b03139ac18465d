#include "host/objectstore/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 64 * 1024 };

static bool copy(char *to, size_t size, struct str text)
{
    if (text.len == 0 || text.len >= size)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] <= ' ' || text.data[i] > '~')
            return false;
    memcpy(to, text.data, text.len);
    to[text.len] = 0;
    return true;
}

static bool take_line(struct store_secrets *secrets, struct str line)
{
    struct str name, value;
    if (!str_cut(line, '=', &name, &value))
        return true;
    name = str_trim(name);
    value = str_trim(value);
    if (str_is(name, "aws_access_key_id"))
        return copy(secrets->access_key, sizeof secrets->access_key, value);
    if (str_is(name, "aws_secret_access_key"))
        return copy(secrets->secret_key, sizeof secrets->secret_key, value);
    if (str_is(name, "aws_session_token"))
        return copy(secrets->token, sizeof secrets->token, value);
    return true;
}

bool secrets_read(struct str text, const char *profile, struct store_secrets *ret)
{
    struct store_secrets secrets = {0};
    bool inside = false, valid = true;
    while (text.len > 0 && valid) {
        struct str line = text, rest = {0};
        (void)str_cut(text, '\n', &line, &rest);
        text = rest;
        line = str_trim(line);
        if (line.len >= 2 && line.data[0] == '[' && line.data[line.len - 1] == ']')
            inside = str_is(str_trim((struct str){line.data + 1, line.len - 2}), profile);
        else if (inside && line.len > 0 && line.data[0] != '#' && line.data[0] != ';')
            valid = take_line(&secrets, line);
    }
    valid = valid && secrets.access_key[0] && secrets.secret_key[0];
    if (valid)
        *ret = secrets;
    secrets_forget(&secrets);
    return valid;
}

static int from_file(const char *path, struct store_secrets *ret, struct error *error)
{
    char text[FILE_BYTES_MAX];
    const char *profile = getenv("AWS_PROFILE");
    if (!profile || !*profile)
        profile = "default";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text);
    int reason = errno;
    if (fd >= 0)
        close(fd);
    if (len < 0)
        return error_set_errno(error, reason, "credentials of the object store: %s", path);
    bool read_well = secrets_read((struct str){text, (size_t)len}, profile, ret);
    gnutls_memset(text, 0, sizeof text);
    return read_well
               ? 0
               : error_set(error, ERROR_INVALID,
                           "credentials of the object store: %s has no whole profile [%s]", path, profile);
}

int secrets_load(const struct store_place *place, struct store_secrets *ret, struct error *error)
{
    const char *access_key = getenv("AWS_ACCESS_KEY_ID"), *secret_key = getenv("AWS_SECRET_ACCESS_KEY");
    const char *token = getenv("AWS_SESSION_TOKEN"), *path = getenv("AWS_SHARED_CREDENTIALS_FILE");
    struct store_secrets secrets = {0};
    if (place->credentials[0])
        return from_file(place->credentials, ret, error);
    if (access_key && *access_key && secret_key && *secret_key) {
        bool valid = copy(secrets.access_key, sizeof secrets.access_key, str_from(access_key)) &&
                     copy(secrets.secret_key, sizeof secrets.secret_key, str_from(secret_key)) &&
                     (!token || !*token || copy(secrets.token, sizeof secrets.token, str_from(token)));
        if (valid)
            *ret = secrets;
        secrets_forget(&secrets);
        return valid ? 0
                     : error_set(error, ERROR_INVALID,
                                 "credentials of the object store: AWS_ACCESS_KEY_ID, "
                                 "AWS_SECRET_ACCESS_KEY or AWS_SESSION_TOKEN is too long "
                                 "or has blanks in it");
    }
    if (path && *path)
        return from_file(path, ret, error);
    return error_set(error, ERROR_NOT_FOUND,
                     "there are no credentials for the object store: set credentials= "
                     "in its address, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
                     "AWS_SHARED_CREDENTIALS_FILE");
}

void secrets_forget(struct store_secrets *secrets)
{
    gnutls_memset(secrets, 0, sizeof *secrets);
}
