#include "cmd/usage.h"

#include <stdio.h>

#include "base/nearest.h"
#include "cmd/client.h"

enum { LETTERS_MAX = 64, TEXT_MAX = 512 };

static const char *command = "";
static char option_name[NEAREST_WORD_MAX + 8]; /* as typed: "--timeout" or "-o" */
static const char *option_value;
static bool option_said; /* usage_option() has printed the mistake */

void usage_begin(const char *name)
{
    command = name;
}

const char *usage_command(void)
{
    return command;
}

/* Returns the name in "--name=value". */
static struct str typed_name(const char *text)
{
    struct str all = str_from(text), name, value;
    return str_cut(all, '=', &name, &value) ? name : all;
}

static void say_unknown_option(struct str typed, const struct option *options)
{
    char dashed[NEAREST_WORD_MAX + 8];
    struct str plain = {typed.data + 2, typed.len - 2};
    struct nearest nearest = nearest_to(plain);
    bool several = false;
    for (const struct option *option = options; option->name; option++) {
        several |= str_starts(str_from(option->name), plain);
        nearest_offer(&nearest, str_from(option->name));
    }
    snprintf(dashed, sizeof dashed, STR_FORMAT, STR_ARG(typed));
    if (nearest.best.len)
        say("%s option \"%s\"; did you mean \"--" STR_FORMAT "\"?", several ? "ambiguous" : "unknown", dashed,
            STR_ARG(nearest.best));
    else
        say("unknown option \"%s\"", dashed);
}

static const struct option *option_of(const struct option *options, int letter)
{
    for (const struct option *option = options; option->name; option++)
        if (option->val == letter)
            return option;
    return NULL;
}

/* Prints the mistake in an option. getopt has advanced past the wrong word, except for a letter within
 * "-abc", which optopt has. */
static void say_wrong_option(int failure, const char *word, const struct option *options)
{
    const struct option *known = optopt ? option_of(options, optopt) : NULL;
    struct str typed = typed_name(word);
    bool is_long = str_starts(typed, STR("--"));
    if (!optopt && is_long) {
        say_unknown_option(typed, options);
        return;
    }
    is_long =
        is_long && known && str_starts(str_from(known->name), (struct str){typed.data + 2, typed.len - 2});
    if (failure == '?' && !is_long)
        say("unknown option \"-%c\"", optopt);
    else if (is_long)
        say("option \"--%s\" %s", known->name, failure == ':' ? "needs a value" : "takes no value");
    else
        say("option \"-%c\" needs a value", optopt);
}

int usage_option(int argc, char **argv, const char *letters, const struct option *options, int *ret_index)
{
    char colon[LETTERS_MAX]; /* with the ':' that distinguishes a missing value from an unknown option */
    int index = -1;
    bool ordered = letters[0] == '+';
    snprintf(colon, sizeof colon, "%s:%s", ordered ? "+" : "", letters + ordered);
    opterr = 0;
    option_said = false;
    int letter = getopt_long(argc, argv, colon, options, &index);
    if (letter == '?' || letter == ':') {
        option_said = true;
        say_wrong_option(letter, argv[optind > 1 ? optind - 1 : 1], options);
        return '?';
    }
    if (letter == -1)
        return -1;
    if (index >= 0)
        snprintf(option_name, sizeof option_name, "--%s", options[index].name);
    else
        snprintf(option_name, sizeof option_name, "-%c", letter);
    option_value = optarg;
    if (ret_index && index >= 0)
        *ret_index = index;
    return letter;
}

bool usage_value(bool good)
{
    if (!good && !option_said)
        say("%s: \"%s\" is not a valid value", option_name, option_value ? option_value : "");
    return good;
}

bool usage_json(const char *value, bool *ret_json)
{
    *ret_json = strcmp(value, "json") == 0;
    if (*ret_json || strcmp(value, "text") == 0 || strcmp(value, "table") == 0)
        return true;
    say("unknown output format \"%s\", expected json or text", value);
    return false;
}

bool usage_place(const char *text, char *ret_host, size_t size, uint16_t *ret_port)
{
    const char *colon = strrchr(text, ':');
    int64_t port;
    if (!colon || !str_to_i64(str_from(colon + 1), 1, 65535, &port))
        return false;
    struct str host = {text, (size_t)(colon - text)};
    if (host.len >= 2 && host.data[0] == '[' && host.data[host.len - 1] == ']')
        host = (struct str){host.data + 1, host.len - 2};
    if (host.len == 0 || host.len >= size)
        return false;
    snprintf(ret_host, size, STR_FORMAT, STR_ARG(host));
    *ret_port = (uint16_t)port;
    return true;
}

void usage_unknown(const char *what, struct str word, const char *const *known, size_t count)
{
    struct nearest nearest = nearest_to(word);
    struct buf text BUF_CLEANUP = {0};
    for (size_t i = 0; i < count; i++)
        nearest_offer(&nearest, str_from(known[i]));
    if (nearest.best.len) {
        say("unknown %s \"" STR_FORMAT "\"; did you mean \"" STR_FORMAT "\"?", what, STR_ARG(word),
            STR_ARG(nearest.best));
        return;
    }
    for (size_t i = 0; i < count; i++)
        buf_printf(&text, "%s%s", i == 0 ? "" : i + 1 == count ? " or " : ", ", known[i]);
    say("\"" STR_FORMAT "\" is not %s %s, expected " STR_FORMAT, STR_ARG(word),
        strchr("aeiou", what[0]) ? "an" : "a", what, STR_ARG(buf_str(&text)));
}

int usage_wrong(const char *usage, const char *format, ...)
{
    const char *end = strstr(usage, "\n\n");
    if (format) {
        char text[TEXT_MAX];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        say("%s", text);
    }
    fprintf(stderr, "%.*s\n`phalanx %s --help` explains it.\n", end ? (int)(end - usage) : (int)strlen(usage),
            usage, command);
    return EXIT_USAGE;
}
