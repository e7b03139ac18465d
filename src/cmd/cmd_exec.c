/* phalanx exec: runs a command beside a pod's container, over a websocket (docs/api.md). */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <termios.h>
#include <unistd.h>

#include "cmd/usage.h"
#include "cmd/client.h"
#include "cmd/https.h"
#include "core/words/release.h"
#include "net/websocket.h"

static const char usage[] =
    "Usage: phalanx exec [options] POD -- COMMAND [ARGUMENT...]\n"
    "\n"
    "Runs a command beside a pod's container: on the same machine, as the same user, with the same\n"
    "environment, working directory and limits. The command ends with the pod and with this program; its\n"
    "exit status is this program's.\n"
    "\n"
    "  -c, --container NAME   in this container (default: the first)\n"
    "  -i, --stdin            pass standard input to the command\n"
    "  -t, --tty              give the command a terminal of this one's size\n" CLIENT_HELP CLIENT_EXIT_HELP;

enum { CHANNEL_INPUT = 0, CHANNEL_OUTPUT = 1, CHANNEL_ERRORS = 2, CHANNEL_STATUS = 3, CHANNEL_RESIZE = 4 };
enum { HEADER_BYTES_MAX = 16384, CHUNK_BYTES = 16384, MESSAGE_BYTES_MAX = 16 << 20 };

struct session {
    struct client client;
    struct client_options options;
    const char *container;
    bool input, tty, raw;
    CURL *curl;
    curl_socket_t socket;
    struct websocket websocket;
    struct buf out, status;
    int channel;
    bool over, input_over;
    struct termios before;
};

static volatile sig_atomic_t resized;

static void on_resize(int signal_number)
{
    (void)signal_number;
    resized = 1;
}

/* --- sending -------------------------------------------------------------------------------------- */

static void put(struct session *session, enum websocket_opcode opcode, struct str head, struct str bytes)
{
    uint8_t mask[4];
    CHECK(getrandom(mask, sizeof mask, 0) == sizeof mask);
    websocket_put(&session->out, opcode, mask, head, bytes);
}

static void put_channel(struct session *session, uint8_t channel, struct str bytes)
{
    char head = (char)channel;
    put(session, WEBSOCKET_BINARY, (struct str){&head, 1}, bytes);
}

static bool flush(struct session *session)
{
    while (session->out.len > 0) {
        size_t sent = 0;
        CURLcode rc = curl_easy_send(session->curl, session->out.data, session->out.len, &sent);
        if (rc == CURLE_AGAIN)
            return true;
        if (rc != CURLE_OK)
            return false;
        buf_drop_front(&session->out, sent);
    }
    return true;
}

static void put_size(struct session *session)
{
    struct winsize size;
    char text[64];
    resized = 0;
    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0)
        return;
    snprintf(text, sizeof text, "{\"Width\":%u,\"Height\":%u}", size.ws_col, size.ws_row);
    put_channel(session, CHANNEL_RESIZE, str_from(text));
}

/* --- receiving ------------------------------------------------------------------------------------ */

static void write_all(int fd, struct str bytes)
{
    while (bytes.len > 0) {
        ssize_t count = write(fd, bytes.data, bytes.len);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return; /* no process reads the output */
        bytes = (struct str){bytes.data + count, bytes.len - (size_t)count};
    }
}

static void on_data(struct session *session, const struct websocket_event *event)
{
    struct str bytes = event->bytes;
    if (event->first) {
        session->channel = bytes.len ? (uint8_t)bytes.data[0] : -1;
        bytes = bytes.len ? (struct str){bytes.data + 1, bytes.len - 1} : bytes;
    }
    if (session->channel == CHANNEL_OUTPUT)
        write_all(STDOUT_FILENO, bytes);
    else if (session->channel == CHANNEL_ERRORS)
        write_all(STDERR_FILENO, bytes);
    else if (session->channel == CHANNEL_STATUS)
        buf_add_str(&session->status, bytes);
}

static void feed(struct session *session, char *data, size_t len)
{
    struct websocket_event event;
    size_t used;
    do {
        websocket_next(&session->websocket, data, len, &used, &event);
        data += used;
        len -= used;
        if (event.kind == WEBSOCKET_DATA)
            on_data(session, &event);
        else if (event.kind == WEBSOCKET_PING)
            put(session, WEBSOCKET_OP_PONG, STR(""), event.bytes);
        session->over |= event.kind == WEBSOCKET_CLOSED || event.kind == WEBSOCKET_BROKEN;
    } while (event.kind != WEBSOCKET_MORE);
}

static void receive(struct session *session)
{
    static char chunk[CHUNK_BYTES];
    while (!session->over) {
        size_t got = 0;
        CURLcode rc = curl_easy_recv(session->curl, chunk, sizeof chunk, &got);
        if (rc == CURLE_AGAIN)
            return;
        if (rc != CURLE_OK || got == 0)
            session->over = true;
        else
            feed(session, chunk, got);
    }
}

/* --- the handshake -------------------------------------------------------------------------------- */

static void add_request(struct session *session, struct str path, const char *key)
{
    const char *host = strstr(session->client.server.data, "://");
    struct buf *out = &session->out;
    buf_printf(out, "GET " STR_FORMAT " HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n", STR_ARG(path),
               host ? host + 3 : session->client.server.data, this_release.user_agent);
    if (session->client.bearer.len)
        buf_printf(out, "Authorization: Bearer %s\r\n", session->client.bearer.data);
    buf_printf(out,
               "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
               "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n",
               key);
}

static int wait_for(struct session *session, short events)
{
    struct pollfd fd = {session->socket, events, 0};
    return poll(&fd, 1, 30000);
}

/* Reads the answer's head up to its empty line; the bytes after it are frames. Returns false if the
 * connection broke. */
static bool read_head(struct session *session, struct buf *head, struct buf *ret_rest)
{
    static char chunk[CHUNK_BYTES];
    while (head->len < HEADER_BYTES_MAX) {
        size_t got = 0;
        CURLcode rc = curl_easy_recv(session->curl, chunk, sizeof chunk, &got);
        if (rc == CURLE_AGAIN && wait_for(session, POLLIN) > 0)
            continue;
        if (rc != CURLE_OK || got == 0)
            return false;
        buf_add(head, chunk, got);
        const char *end = memmem(head->data, head->len, "\r\n\r\n", 4);
        if (!end)
            continue;
        size_t len = (size_t)(end - head->data) + 4;
        buf_add(ret_rest, head->data + len, head->len - len);
        return true;
    }
    return false;
}

static int shake_hands(struct session *session, struct str path)
{
    uint8_t random[16];
    char key[WEBSOCKET_KEY_BYTES + 1], accept[WEBSOCKET_ACCEPT_BYTES + 1];
    struct buf head BUF_CLEANUP = {0}, rest BUF_CLEANUP = {0};
    CHECK(getrandom(random, sizeof random, 0) == sizeof random);
    websocket_key(random, key);
    websocket_accept(str_from(key), accept);
    add_request(session, path, key);
    while (session->out.len > 0)
        if (!flush(session) || (session->out.len > 0 && wait_for(session, POLLOUT) <= 0))
            break;
    if (session->out.len > 0 || !read_head(session, &head, &rest)) {
        say("the controller closed the connection");
        return EXIT_FAILED;
    }
    if (memmem(head.data, head.len, " 101 ", 5) && memmem(head.data, head.len, accept, strlen(accept))) {
        websocket_init(&session->websocket, WEBSOCKET_CLIENT, MESSAGE_BYTES_MAX);
        feed(session, rest.data, rest.len);
        return EXIT_OK;
    }
    struct client_reply reply; /* repeated as a plain request, so that the refusal has a body */
    int rc = client_call(&session->client, &(struct client_request){.path = path}, &reply);
    if (rc == EXIT_OK) {
        rc = client_refused(&reply, NULL);
        client_reply_done(&reply);
    }
    return rc;
}

/* --- running -------------------------------------------------------------------------------------- */

static void read_input(struct session *session)
{
    static char chunk[CHUNK_BYTES];
    ssize_t count = read(STDIN_FILENO, chunk, sizeof chunk);
    if (count > 0) {
        put_channel(session, CHANNEL_INPUT, (struct str){chunk, (size_t)count});
    } else if (count == 0 || errno != EINTR) {
        session->input_over = true;
        put_channel(session, 255, (struct str){"\0", 1});
    }
}

/* Relays input and output. Reads input only when earlier input has been sent, so the command limits its
 * rate. */
static void relay(struct session *session)
{
    while (!session->over) {
        bool sending = session->out.len > 0, reading = session->input && !session->input_over && !sending;
        struct pollfd fds[] = {{session->socket, (short)(POLLIN | (sending ? POLLOUT : 0)), 0},
                               {reading ? STDIN_FILENO : -1, POLLIN, 0}};
        int ready = poll(fds, 2, -1);
        if (resized && session->tty)
            put_size(session);
        if (ready > 0 && fds[1].revents)
            read_input(session);
        receive(session);
        if (!flush(session))
            session->over = true;
    }
}

static void make_raw(struct session *session)
{
    struct termios raw;
    if (!session->tty || tcgetattr(STDIN_FILENO, &session->before) < 0)
        return;
    raw = session->before;
    cfmakeraw(&raw);
    session->raw = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
    signal(SIGWINCH, on_resize);
    put_size(session);
}

/* Returns the command's exit code, or an exit code of phalanx after a message. */
static int result(struct session *session)
{
    ARENA_CLEANUP struct arena arena = {0};
    struct doc *status;
    int64_t code;
    if (session->status.len == 0 || json_parse(&arena, buf_str(&session->status), &status, NULL) < 0) {
        say("the connection broke before the command's end was known");
        return EXIT_FAILED;
    }
    if (str_is(doc_text(status, "status"), "Success"))
        return EXIT_OK;
    const struct doc *cause = doc_at(doc_dotted(status, "details.causes"), 0);
    if (str_is(doc_text(status, "reason"), "NonZeroExitCode") &&
        str_to_i64(doc_text(cause, "message"), 1, 255, &code))
        return (int)code;
    say(STR_FORMAT, STR_ARG(doc_text(status, "message")));
    return EXIT_FAILED;
}

static int run(struct session *session, const char *pod, char **command, int count)
{
    struct buf path BUF_CLEANUP = {0};
    const char *namespace_ = client_namespace(&session->options);
    kind_path(&path, kind_find(STR("pods")), namespace_ ? namespace_ : "default", str_from(pod));
    buf_printf(&path, "/exec?stdout=true&stderr=%s&stdin=%s&tty=%s", session->tty ? "false" : "true",
               session->input ? "true" : "false", session->tty ? "true" : "false");
    if (session->container) {
        buf_add_str(&path, STR("&container="));
        url_add(&path, str_from(session->container));
    }
    for (int i = 0; i < count; i++) {
        buf_add_str(&path, STR("&command="));
        url_add(&path, str_from(command[i]));
    }
    session->curl = https_handle(&session->client, STR(""));
    curl_easy_setopt(session->curl, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(session->curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    CURLcode rc = curl_easy_perform(session->curl);
    if (rc == CURLE_OK)
        rc = curl_easy_getinfo(session->curl, CURLINFO_ACTIVESOCKET, &session->socket);
    if (rc != CURLE_OK) {
        say("no controller answers at %s: %s", session->client.server.data, curl_easy_strerror(rc));
        return EXIT_UNREACHABLE;
    }
    int code = shake_hands(session, buf_str(&path));
    if (code != EXIT_OK)
        return code;
    make_raw(session);
    relay(session);
    if (session->raw)
        tcsetattr(STDIN_FILENO, TCSANOW, &session->before);
    return result(session);
}

int cmd_exec(int argc, char **argv)
{
    static const struct option options[] = {{"container", required_argument, NULL, 'c'},
                                            {"stdin", no_argument, NULL, 'i'},
                                            {"tty", no_argument, NULL, 't'},
                                            CLIENT_LONG_OPTIONS,
                                            {0}};
    struct session session = {.channel = -1};
    bool usable = true;
    int letter;
    while ((letter = usage_option(argc, argv, "+" CLIENT_SHORT_OPTIONS "c:it", options, NULL)) != -1) {
        if (letter == 'c')
            session.container = optarg;
        else if (letter == 'i')
            session.input = true;
        else if (letter == 't')
            session.tty = true;
        else
            usable = client_option(&session.options, letter, optarg) && usable;
    }
    if (session.options.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    int first = optind + 1;
    if (first < argc && strcmp(argv[first], "--") == 0)
        first++;
    if (!usable || first >= argc) {
        return usage_wrong(usage, usable ? "POD and COMMAND are needed" : NULL);
    }
    signal(SIGPIPE, SIG_IGN);
    client_open(&session.client, &session.options);
    int rc = run(&session, argv[optind] + (strncmp(argv[optind], "pod/", 4) == 0 ? 4 : 0), argv + first,
                 argc - first);
    if (session.curl)
        curl_easy_cleanup(session.curl);
    client_close(&session.client);
    buf_done(&session.out);
    buf_done(&session.status);
    return rc;
}
