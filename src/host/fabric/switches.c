#include "host/fabric/switches.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "doc/doc.h"
#include "doc/yaml.h"

enum { LIST_BYTES_MAX = 16 << 20 };

static int list_wrong(struct error *error, const struct doc *node, const char *what)
{
    return error_set(error, ERROR_INVALID, "%u:%u: %s", node->line, node->column, what);
}

/* Copies the string `key` of an entry. If it is absent, *to becomes empty. */
static int take_text(const struct doc *entry, const char *key, char *to, size_t size, struct error *error)
{
    const struct doc *node = doc_get(entry, key);
    struct str text = doc_str(node, STR(""));
    if (node && (!text.len || text.len >= size))
        return error_set(error, ERROR_INVALID, "%u:%u: %s: expected a text of 1 to %zu bytes", node->line,
                         node->column, key, size - 1);
    memcpy(to, text.data ? text.data : "", text.len);
    to[text.len] = 0;
    return 0;
}

static void copy_word(char *to, size_t size, struct str from)
{
    snprintf(to, size, STR_FORMAT, STR_ARG(from));
}

struct switch_entry switch_entry_of(struct str driver, struct str address, const struct switch_login *login)
{
    struct switch_entry entry = {.listed = true};
    copy_word(entry.driver, sizeof entry.driver, driver);
    copy_word(entry.address, sizeof entry.address, address);
    if (login) {
        copy_word(entry.user, sizeof entry.user, login->user);
        copy_word(entry.secret_file, sizeof entry.secret_file, login->secret_file);
    }
    return entry;
}

int switch_secret_read(const char *path, char ret_secret[SWITCH_SECRET_MAX], struct error *error)
{
    char text[SWITCH_SECRET_MAX + 1] = {0};
    size_t length = 0;
    ssize_t got = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (fd >= 0 && length < SWITCH_SECRET_MAX &&
           (got = read(fd, text + length, SWITCH_SECRET_MAX - length)) > 0)
        length += (size_t)got;
    int reason = errno;
    if (fd >= 0)
        close(fd);
    if (got < 0)
        return error_set_errno(error, reason, "secretFile %.200s", path);
    length = strcspn(text, "\r\n");
    if (length == 0 || length >= SWITCH_SECRET_MAX)
        return error_set(error, ERROR_INVALID,
                         "secretFile %.200s: expected a password of 1 to %d bytes in the first line", path,
                         SWITCH_SECRET_MAX - 1);
    memcpy(ret_secret, text, length + 1);
    ret_secret[length] = 0;
    return 0;
}

static int take_secret(const struct doc *entry, struct switch_entry *to, struct error *error)
{
    char path[SWITCH_WORD_MAX];
    if (take_text(entry, "secretFile", path, sizeof path, error) < 0)
        return ERROR_INVALID;
    if (!path[0])
        return 0;
    const struct doc *at = doc_get(entry, "secretFile");
    struct error why;
    if (switch_secret_read(path, to->secret, &why) < 0)
        return error_set(error, ERROR_INVALID, "%u:%u: %s", at->line, at->column, why.text);
    return 0;
}

static int take_entry(const struct doc *entry, struct switches *switches, struct error *error)
{
    static const char *const keys[] = {"name", "driver", "address", "user", "secretFile"};
    char name[16];
    struct pod_switch which;
    if (entry->kind != DOC_OBJECT)
        return list_wrong(error, entry,
                          "expected an entry such as {name: x0, driver: scpi, address: HOST:PORT}");
    for (size_t i = 0; i < entry->object.len; i++) {
        size_t known = 0;
        while (known < 5 && !str_is(entry->object.members[i].key, keys[known]))
            known++;
        if (known == 5)
            return list_wrong(error, entry->object.members[i].value,
                              "unknown field: expected name, driver, address, user or secretFile");
    }
    if (take_text(entry, "name", name, sizeof name, error) < 0)
        return ERROR_INVALID;
    if (pod_switch_parse(str_from(name), &which, NULL) < 0)
        return list_wrong(error, entry, "name: expected x0 to x15, y0 to y15 or z0 to z15");
    struct switch_entry *to = &switches->entry[pod_switch_number(which)];
    if (to->listed)
        return list_wrong(error, entry, "name: this switch is listed already");
    if (take_text(entry, "driver", to->driver, sizeof to->driver, error) < 0 ||
        take_text(entry, "address", to->address, sizeof to->address, error) < 0 ||
        take_text(entry, "user", to->user, sizeof to->user, error) < 0 || take_secret(entry, to, error) < 0)
        return ERROR_INVALID;
    if (!to->driver[0] || !to->address[0])
        return list_wrong(error, entry, "expected a driver and an address");
    to->listed = true;
    switches->listed++;
    return 0;
}

int switches_parse(struct str text, struct switches *ret_switches, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = LIST_BYTES_MAX};
    struct switches switches = {0};
    struct doc_list docs;
    int rc = yaml_parse_all(&arena, text, &docs, error);
    if (rc < 0)
        return rc;
    const struct doc *list = docs.len == 1 ? doc_get(docs.items[0], "switches") : NULL;
    if (!list || list->kind != DOC_ARRAY || !doc_len(list))
        return error_set(
            error, ERROR_INVALID,
            "1:1: expected one document with a list \"switches\"; phalanx switch-sim --write FILE "
            "makes an example");
    for (size_t i = 0; i < doc_len(list); i++)
        if (take_entry(doc_at(list, i), &switches, error) < 0)
            return ERROR_INVALID;
    *ret_switches = switches;
    return 0;
}

const char *change_end_name(enum change_end end)
{
    static const char *const names[] = {"waits", "applied", "not-applied", "undone", "unknown"};
    return names[end];
}
