#include "flow/wire/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static int token_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int token_parse(struct str text, const char *from, struct flow_token *ret, struct error *error)
{
    struct flow_token token = {.set = true};
    text = str_trim(text);
    bool good = text.len == FLOW_TOKEN_DIGITS;
    for (size_t i = 0; good && i < FLOW_TOKEN_BYTES; i++) {
        int high = token_digit(text.data[2 * i]), low = token_digit(text.data[2 * i + 1]);
        good = high >= 0 && low >= 0;
        token.bytes[i] = good ? (uint8_t)(high << 4 | low) : 0;
    }
    if (!good)
        return error_set(error, ERROR_INVALID, "%s holds no token of %d hexadecimal digits", from,
                         FLOW_TOKEN_DIGITS);
    *ret = token;
    return 0;
}

static int token_read(const char *path, struct flow_token *ret, struct error *error)
{
    char text[FLOW_TOKEN_DIGITS + 16]; /* more than a token and an end of line, to detect longer files */
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &info) < 0) {
        int rc = error_set_errno(error, errno, "reading the token file %s", path);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    bool open_to_others = !S_ISREG(info.st_mode) || info.st_mode & (S_IROTH | S_IWOTH);
    ssize_t len = open_to_others ? -1 : read(fd, text, sizeof text);
    close(fd);
    if (open_to_others)
        return error_set(error, ERROR_INVALID,
                         "the token file %s is no file, or may be read by others: chmod 600 it", path);
    return token_parse((struct str){text, len > 0 ? (size_t)len : 0}, path, ret, error);
}

/* Finds the token file next to the socket at `address`. Returns false if there is none. */
static bool token_beside(const char *address, char *ret_path, size_t size)
{
    struct stat info;
    const char *slash = strrchr(address, '/');
    if (strncmp(address, "unix:", 5) != 0 || !slash)
        return false;
    int len = snprintf(ret_path, size, "%.*s/%s", (int)(slash - address - 5), address + 5, FLOW_TOKEN_FILE);
    return len > 0 && (size_t)len < size && lstat(ret_path, &info) == 0 && S_ISREG(info.st_mode);
}

int flow_token_find(const char *path, const char *beside, struct flow_token *ret_token, struct error *error)
{
    const char *text = getenv("PHX_FLOW_TOKEN"), *file = getenv("PHX_FLOW_TOKEN_FILE");
    char near[512];
    if (path)
        return token_read(path, ret_token, error);
    if (beside && token_beside(beside, near, sizeof near))
        return token_read(near, ret_token, error);
    if (text && text[0])
        return token_parse(str_from(text), "PHX_FLOW_TOKEN", ret_token, error);
    if (file && file[0])
        return token_read(file, ret_token, error);
    *ret_token = (struct flow_token){0};
    return 0;
}

int flow_token_make(const char *path, struct error *error)
{
    uint8_t bytes[FLOW_TOKEN_BYTES];
    char text[FLOW_TOKEN_DIGITS + 2];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return error_set_errno(error, errno, "drawing a token");
    for (int i = 0; i < FLOW_TOKEN_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    text[FLOW_TOKEN_DIGITS] = '\n';
    if (unlink(path) < 0 && errno != ENOENT) /* the file of an earlier run */
        return error_set_errno(error, errno, "replacing %s", path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), rc = 0;
    if (fd < 0 || write(fd, text, FLOW_TOKEN_DIGITS + 1) != FLOW_TOKEN_DIGITS + 1)
        rc = error_set_errno(error, errno, "writing %s", path);
    if (fd >= 0)
        close(fd);
    return rc;
}

void flow_token_sign(const struct flow_token *token, struct flow_entry *hello, struct buf *tail)
{
    if (!token->set)
        return;
    hello->flags |= ENTRY_HAS_TOKEN;
    buf_add(tail, token->bytes, FLOW_TOKEN_BYTES);
}

bool flow_token_take(const struct flow_token *token, struct flow_entry *hello, struct str *tail)
{
    uint8_t differ = 0;
    if (!(hello->flags & ENTRY_HAS_TOKEN))
        return !token->set;
    if (tail->len < FLOW_TOKEN_BYTES)
        return false;
    tail->len -= FLOW_TOKEN_BYTES;
    for (int i = 0; i < FLOW_TOKEN_BYTES; i++)
        differ |= (uint8_t)tail->data[tail->len + (size_t)i] ^ token->bytes[i];
    hello->flags &= (uint8_t)~ENTRY_HAS_TOKEN;
    hello->tail_bytes = (uint32_t)tail->len;
    return !token->set || differ == 0;
}
