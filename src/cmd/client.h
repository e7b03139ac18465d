/* client.h - options, requests, and answers as documents, for the commands that talk to a controller.
 *
 *     struct client client;
 *     int rc = client_open(&client, &options);
 *     rc = client_call(&client, &(struct client_request){.method = "GET", .path = path}, &reply);
 *     ...
 *     client_reply_done(&reply); client_close(&client);
 *
 * A function that returns an exit code (cmd.h) other than EXIT_OK has printed the reason on standard error.
 */
#ifndef PHX_CMD_CLIENT_H
#define PHX_CMD_CLIENT_H

#include <getopt.h>

#include "doc/json.h"
#include "base/units.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "core/kinds/kinds.h"
#include "net/http_client.h"

/* --- options that every client command takes --------------------------------------------------- */

struct client_options {
    const char *server;     /* --server, else $PHALANX_SERVER, else the kubeconfig's, else loopback */
    const char *namespace_; /* -n; NULL: "default" */
    bool all_namespaces;    /* -A */
    bool help;              /* -h, --help */
};
#define CLIENT_SHORT_OPTIONS "s:n:Ah"
#define CLIENT_LONG_OPTIONS                                                                                  \
    {"server", required_argument, NULL, 's'}, {"namespace", required_argument, NULL, 'n'},                   \
        {"all-namespaces", no_argument, NULL, 'A'},                                                          \
    {                                                                                                        \
        "help", no_argument, NULL, 'h'                                                                       \
    }
#define CLIENT_HELP                                                                                          \
    "  -n, --namespace NAME   the namespace (default: default)\n"                                            \
    "  -s, --server URL       the controller (default: $PHALANX_SERVER, else that of the kubeconfig file\n"  \
    "                         $PHALANX_CONFIG or $KUBECONFIG, whose credentials are used, else\n"            \
    "                         127.0.0.1:7070, with those of the `phalanx up` of this user)\n"                \
    "  -h, --help             this text\n"
#define CLIENT_EXIT_HELP                                                                                     \
    "\nExit status: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 no controller answers, 5 timed out.\n"
/* Takes an option of the above; false: it is none of them. */
bool client_option(struct client_options *options, int letter, const char *value);
const char *client_namespace(const struct client_options *options);

/* --- kinds ------------------------------------------------------------------------------------- */

const struct resource *kind_find(struct str name);                       /* any of its names; NULL: unknown */
const struct resource *kind_of(struct str api_version, struct str kind); /* of a document; NULL: not served */
void kind_say_unknown(struct str name); /* and the kind that was probably meant */
/* Returns the kind whose name is nearest to `kind`, in this version if it is served in it; NULL: none is
 * near. */
const struct resource *kind_nearest(struct str api_version, struct str kind);
/* Splits "jobset/x" or "jobsets.jobset.x-k8s.io/x"; false, after a message: not KIND/NAME of a known kind. */
bool kind_split(const char *text, const struct resource **ret_kind, struct str *ret_name);
/* Arguments are KIND NAME... or KIND/NAME...: takes a leading KIND off them; without one *ret_kind is
 * untouched. False, after a message: the kind is unknown, or no name follows. */
bool kind_leading(char ***args, int *count, const struct resource **ret_kind);
/* Appends the path of one object, or of the list (name empty; namespace NULL: of all). */
void kind_path(struct buf *out, const struct resource *kind, const char *namespace_, struct str name);
void url_add(struct buf *out, struct str text); /* percent-encoded */

/* --- requests ---------------------------------------------------------------------------------- */

enum { CLIENT_CONNECT_MS = 5000 };

struct client {
    struct http_client *http;   /* of a server with a http:// URL; else NULL */
    struct https_client *https; /* of any other; else NULL */
    int ca_fd, cert_fd, key_fd; /* memory files with the kubeconfig's certificates and key; -1: none */
    struct buf bearer;          /* the kubeconfig's token; empty: none */
    struct buf server;          /* URL, without a slash at its end */
    struct buf servers;         /* all that were named, with commas */
    bool image_said;
    void (*on_tick)(void *context); /* called while a stream is silent, about once a second; NULL: nothing */
    void *tick_context;
    bool quiet; /* a server that does not answer was told of */
};
struct client_request {
    const char *method; /* NULL: GET */
    struct str path;    /* with query */
    const char *accept, *content_type;
    struct str body;
    int64_t timeout_ms; /* 0: one minute */
};
struct client_reply {
    int code;
    struct buf text;
    struct arena arena;
    struct doc *doc; /* NULL: not JSON */
};

/* A program without HTTPS starts again as phalanx-full here (full.h), so a command opens its client before it
 * reads standard input. */
int client_open(struct client *client, const struct client_options *options);
void client_close(struct client *client);
/* A write whose connection breaks before its answer is sent again, to the next server that takes a
 * connection, for up to half a minute: it is applied once (docs/ha.md, "Writes without an answer"). */
int client_call(struct client *client, const struct client_request *request, struct client_reply *ret_reply);
void client_reply_done(struct client_reply *reply);
/* After a code >= 400: prints the Status behind `doing` (what the command did; may be NULL) and returns its
 * exit code. */
int client_refused(const struct client_reply *reply, const char *doing);
/* client_call, and says what is refused: *ret_reply is there with EXIT_OK alone, and is an object or list. */
int client_do(struct client *client, const struct client_request *request, struct client_reply *ret_reply);
/* The same for GET path. */
int client_get(struct client *client, struct str path, struct client_reply *ret_reply);

/* Reads a stream of lines (a watch) until it ends, `on_line` returns false, or `timeout_ms` (0: none) is
 * over. *ret_ended: on_line ended it. EXIT_TIMEOUT when the time ran out, else the usual codes; a connection
 * that broke is EXIT_OK. */
typedef bool client_line_fn(void *context, struct str line);
int client_stream(struct client *client, struct str path, const char *accept, int64_t timeout_ms,
                  client_line_fn *on_line, void *context, bool *ret_ended);

/* config.c: reads server and credentials from the current context of the kubeconfig file $PHALANX_CONFIG,
 * else of $KUBECONFIG, if one of them is set, else from that of the cluster that `phalanx up` runs at
 * `server` (local.h). `server` NULL: none was named. False, after a message: the file cannot be used. */
bool client_read_config(struct client *client, const char *server);
#define CLIENT_SERVER_DEFAULT "http://127.0.0.1:7070"

/* --- watching objects -------------------------------------------------------------------------- */

/* Calls `on_object` for each object and for each change; `type` is ADDED, MODIFIED or DELETED. Calls it with
 * BEGIN and SYNCED (object NULL) before and after each list: objects that were not ADDED between the two are
 * gone. Lists again when the server went away or the version is too old. Ends when on_object returns false
 * (EXIT_OK), or with EXIT_TIMEOUT. */
typedef bool watch_fn(void *context, const char *type, const struct doc *object);
int client_watch(struct client *client, struct str list_path, struct str query, int64_t deadline_ns,
                 watch_fn *on_object, void *context);

int64_t client_clock(void); /* monotonic, for deadlines */
int64_t client_wall(void);

/* --- output ------------------------------------------------------------------------------------ */

bool output_is_terminal(void); /* standard output */
/* Characters a line and lines of the screen. Not a terminal: $COLUMNS if set, else no limit. */
void output_size(int *ret_columns, int *ret_lines);
/* Appends `text`, broken at blanks, so that no line is longer than `width` characters. Its first line begins
 * at column `at`, where the caller has come; the others are indented. */
void put_wrapped(struct buf *out, struct str text, size_t width, size_t at, size_t indent);
void put_count(struct buf *out, int64_t count, const char *noun); /* "1 process", "3 processes" */
void put_clock(struct buf *out, int64_t wall_ns); /* "17:03:25.454714": the time of day here */
bool output_colors(void);                         /* a terminal, and NO_COLOR is not set */
const char *color_of(struct str word);            /* escape for a state word; "" without colours */
const char *color_end(void);
/* To standard output, at once; empties it. Control characters, which objects and messages may hold, do not
 * reach a terminal: of escape sequences there are those of color_of alone. */
void output_write(struct buf *out);
/* printf through output_write: for lines with names and words that a server or a file has. */
void output_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Replaces control characters but newlines and tabs, and, if so, the sequences of color_of. */
void output_clean(struct buf *text, bool colors);
/* Escapes control characters that JSON may hold as they are, so that output_clean leaves them. */
void output_escape(struct buf *json);
/* "phalanx: COMMAND: ...\n" on standard error, without control characters. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct str doc_text(const struct doc *object, const char *path); /* string at a dotted path; "" if absent */
int64_t doc_number(const struct doc *object, const char *path, int64_t fallback);
const struct doc *doc_dotted(const struct doc *object, const char *path);
double doc_real(const struct doc *node, double fallback);

/* A table whose columns are as wide as their cells. */
enum { TABLE_COLUMNS_MAX = 24 };
struct text_table {
    size_t columns;
    bool hidden[TABLE_COLUMNS_MAX];
    uint8_t worth[TABLE_COLUMNS_MAX]; /* 0: always shown; else the highest is the first to go (table_fit) */
    size_t width[TABLE_COLUMNS_MAX];
    VEC(struct str) cells; /* row by row */
    struct arena arena;
    bool header_printed;
};
void table_add(struct text_table *table, struct str cell); /* one cell; a row is `columns` of them */
void table_heads(struct text_table *table, const char *const *names); /* the row of `columns` names */
/* Hides columns until a row has at most `width` characters, or only those are left that are always shown;
 * names them, the newest header's, in *ret_hidden. */
void table_fit(struct text_table *table, size_t width, struct buf *ret_hidden);
void table_print(struct text_table *table, struct buf *out,
                 bool color); /* all rows so far, then forgets them */
void table_done(struct text_table *table);

#endif
