/* usage.h - reads the options of commands, and explains a wrong command line.
 *
 *     while ((letter = usage_option(argc, argv, "o:h", options, NULL)) != -1)
 *         if (letter == 't')
 *             usable = usage_value(duration_parse(str_from(optarg), &timeout_ns)) && usable;
 *     if (!usable || optind == argc)
 *         return usage_wrong(usage, usable ? "NAME is missing" : NULL);
 *
 * A mistake is printed in one line of the form "phalanx: COMMAND: what", with the word that was probably
 * meant; usage_wrong() adds the command's synopsis. State is global, as in getopt: one command per process.
 */
#ifndef PHX_CMD_USAGE_H
#define PHX_CMD_USAGE_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* Sets the name of the running command, with which say() begins its lines. */
void usage_begin(const char *command);
const char *usage_command(void); /* ""; before usage_begin() */

/* As getopt_long(). For an option that is unknown, ambiguous or lacks its value, prints a message and returns
 * '?'. */
int usage_option(int argc, char **argv, const char *letters, const struct option *options, int *ret_index);

/* Returns `good`. If false, prints that the value of the option read last is not valid (unless usage_option()
 * has refused the option). */
bool usage_value(bool good);

/* Reads the value of -o of a command that prints text or JSON: "json", "text" or "table". Returns false,
 * after a message, for other values. */
bool usage_json(const char *value, bool *ret_json);

/* Reads "HOST:PORT" or "[ADDRESS]:PORT", with a port from 1 to 65535; ret_host has `size` bytes. Returns
 * false, without a message, for other texts. */
bool usage_place(const char *text, char *ret_host, size_t size, uint16_t *ret_port);

/* Prints that the word is not a known `what`, and the known word nearest to it, or all known words if none is
 * near. */
void usage_unknown(const char *what, struct str word, const char *const *known, size_t count);

/* Prints the message `format` (NULL: the mistake has been printed), then the first paragraph of `usage` and
 * how to get the rest. Returns EXIT_USAGE. */
int usage_wrong(const char *usage, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
