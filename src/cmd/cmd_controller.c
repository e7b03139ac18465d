/* phalanx controller: the control plane of one cluster, in the foreground. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cmd/client.h"
#include "cmd/usage.h"
#include "cmd/cluster_file.h"
#include "cmd/cmd.h"
#include "cmd/etcd_place.h"
#include "cmd/keeper.h"
#include "host/controller/controller.h"
#include "host/standby/standby.h"
#include "os/file.h"

static const char usage[] =
    "Usage: phalanx controller --data DIR [--cluster FILE] [options]\n"
    "       phalanx controller --step-down --etcd URL[,URL...]\n"
    "\n"
    "Runs the control plane: replays its log, listens for agents and for API clients, and decides.\n"
    "Killing it harms no task; a new one goes on where it stopped.\n"
    "\n"
    "Options:\n"
    "  --data DIR             where the log and the checkpoints are kept (made when absent)\n"
    "  --cluster FILE         the cluster file; may be left out once the log has one\n"
    "  --api ADDRESS:PORT     where the API listens (default 127.0.0.1:7070)\n"
    "  --api-host NAME        a name by which clients ask for the API over plain HTTP, beside loopback\n"
    "                         names and its addresses; may be repeated\n"
    "  --agents ADDRESS:PORT  where agents connect (default 127.0.0.1:7071)\n"
    "  --keep-log DURATION    how long records stay behind a snapshot (default 7d)\n"
    "  --snapshot-every N     records between snapshots (default 20000)\n"
    "  --encryption-key-file FILE  encrypt log and snapshots with the first key in it "
    "(docs/access.md)\n" ETCD_PLACE_HELP
    "  --advertise ADDRESS:PORT  with --etcd: where the other controllers reach this one's API\n"
    "                         (default: --api)\n"
    "  --step-down            with --etcd: ask the controller that leads to hand over, and end\n"
    "  --faults FILE          the fault table, read again when it changes\n"
    "                         (default /etc/phalanx/faults.yaml, if it exists)\n"
    "\n"
    "Access (docs/access.md). Without these options anybody who reaches the API may do everything:\n"
    "  --tls-cert FILE        serve HTTPS with this certificate; with --client-ca also TLS to agents\n"
    "  --tls-key FILE         its key\n"
    "  --loopback-http        with TLS: clients on this computer may speak plain HTTP too\n"
    "  --client-ca FILE       accept client certificates that these authorities signed\n"
    "  --tokens FILE          accept these bearer tokens: token,user,uid,\"group1,group2\"\n"
    "  --service-account-key FILE\n"
    "                         signs ServiceAccounts' tokens (default: DIR/service-account.key, created)\n"
    "  --roles FILE           roles and bindings beside those in the API; FILE may be made later\n"
    "  --anonymous            treat requests without credentials as system:anonymous instead of\n"
    "                         refusing them\n"
    "  --audit-log FILE       write a line for each request; -: standard error\n"
    "  --audit-policy FILE    choose what is written: an audit.k8s.io/v1 Policy\n"
    "  --audit-max-size SIZE  rotate the file above this size (default 100Mi)\n"
    "  --audit-max-files N    keep so many rotated files (default 10)\n"
    "  --pod-security LEVEL   what namespaces without the label pod-security.kubernetes.io/enforce\n"
    "                         enforce: privileged (default), baseline or restricted\n"
    "  --handshakes N         TLS connections that may shake hands at once, at each port (default 2048 at\n"
    "                         --api, 4096 at --agents); more are closed\n"
    "  --handshakes-per-address N\n"
    "                         likewise, of one source address (default 128 and 1024)\n"
    "  --insecure-agents      believe agents without certificates, also beyond loopback: anyone who\n"
    "                         reaches --agents gets the tasks and Secrets of any machine\n"
    "SIGHUP reads these files again; so does a change of one of them.\n"
    "\n"
    "  --ready-fd FD          write \"API-PORT AGENT-PORT\\n\" there once it listens\n"
    "  --follow PID           end as at SIGTERM when process PID, the parent, ends\n"
    "  --help                 this text\n"
    "\n"
    "Exit status: 0 stopped by SIGTERM or SIGINT, 1 failed, 2 usage.\n";

#define FAULTS_DEFAULT "/etc/phalanx/faults.yaml"
#define AGAIN          "PHALANX_CONTROLLER_AGAIN" /* environment variable: the process has led before */

enum { API_NAMES_MAX = 32, HANDSHAKES_MAX = 65535 };

struct command {
    struct controller_options options;
    const char *api_names[API_NAMES_MAX];
    const char *cluster_path;
    char api_address[64], agent_address[64];
    int ready_fd;
    bool insecure_agents; /* agents need not show a certificate, wherever they connect from */
    struct etcd_place etcd;
    struct store_keys *etcd_keys;
    const char *advertise;
    bool step_down;
};

static bool split_address(const char *text, char *address, size_t size, uint16_t *ret_port)
{
    const char *colon = strrchr(text, ':');
    int64_t port;
    if (!colon || (size_t)(colon - text) >= size || !str_to_i64(str_from(colon + 1), 0, 65535, &port))
        return false;
    snprintf(address, size, "%.*s", (int)(colon - text), text);
    *ret_port = (uint16_t)port;
    return true;
}

static bool number(const char *text, int64_t min, int64_t max, int64_t *ret)
{
    return str_to_i64(str_from(text), min, max, ret);
}

enum access_option {
    TLS_CERT = 256,
    TLS_KEY,
    CLIENT_CA,
    TOKENS,
    ROLES,
    ACCOUNT_KEY,
    ANONYMOUS,
    AUDIT,
    POLICY,
    SIZE,
    FILES
};

static bool parse_access(struct controller_options *options, int option, const char *value)
{
    struct access_options *access = &options->access;
    const char **const files[] = {
        [TLS_CERT - TLS_CERT] = &options->tls_cert,  [TLS_KEY - TLS_CERT] = &options->tls_key,
        [CLIENT_CA - TLS_CERT] = &access->client_ca, [TOKENS - TLS_CERT] = &access->tokens,
        [ROLES - TLS_CERT] = &access->roles,         [AUDIT - TLS_CERT] = &access->audit,
        [POLICY - TLS_CERT] = &access->audit_policy, [ACCOUNT_KEY - TLS_CERT] = &access->account_key,
    };
    int64_t parsed = 0;
    if (option == ANONYMOUS)
        access->anonymous = true;
    else if (option == SIZE && (!quantity_parse_milli(str_from(value), &parsed) || parsed < 1000))
        return false;
    else if (option == SIZE)
        access->audit_bytes_max = (uint64_t)(parsed / 1000);
    else if (option == FILES && !number(value, 1, 10000, &parsed))
        return false;
    else if (option == FILES)
        access->audit_files_max = (uint32_t)parsed;
    else
        *files[option - TLS_CERT] = value;
    bool of_users = option == CLIENT_CA || option == TOKENS || option == ROLES || option == ANONYMOUS;
    options->authenticate |= of_users;
    return true;
}

static bool parse_option(struct command *command, int option, const char *value)
{
    int64_t parsed = 0;
    if (option >= ETCD_PLACE_URLS)
        return etcd_place_option(&command->etcd, option, value);
    if (option >= TLS_CERT)
        return parse_access(&command->options, option, value);
    switch (option) {
    case 'd':
        command->options.data_dir = value;
        return true;
    case 'c':
        command->cluster_path = value;
        return true;
    case 'a':
        command->options.api_address = command->api_address;
        return split_address(value, command->api_address, sizeof(command->api_address),
                             &command->options.api_port);
    case 'g':
        command->options.agent_address = command->agent_address;
        return split_address(value, command->agent_address, sizeof(command->agent_address),
                             &command->options.agent_port);
    case 'n':
        if (command->options.api_name_count == API_NAMES_MAX || !*value || strpbrk(value, "/@ "))
            return false;
        command->api_names[command->options.api_name_count++] = value;
        command->options.api_names = command->api_names;
        return true;
    case 'i':
        command->insecure_agents = true;
        return true;
    case 'A':
        command->advertise = value;
        return strlen(value) < ETCD_WHO_MAX && strrchr(value, ':') && !strchr(value, ' ');
    case 'S':
        return command->step_down = true;
    case 'l':
        command->options.loopback_http = true;
        return true;
    case 'p':
        return pod_security_read(str_from(value), &command->options.pod_security);
    case 'm':
    case 'M':
        if (!number(value, 1, HANDSHAKES_MAX, &parsed))
            return false;
        *(option == 'm' ? &command->options.handshakes_max : &command->options.handshakes_of_address_max) =
            (uint32_t)parsed;
        return true;
    case 'k':
        return duration_parse(str_from(value), &command->options.keep_log_ns);
    case 's':
        if (!number(value, 1, UINT32_MAX, &parsed))
            return false;
        command->options.snapshot_every = (uint32_t)parsed;
        return true;
    case 'e':
        command->options.encryption_keys = value;
        return true;
    case 'f':
        command->options.faults = value;
        return access(value, R_OK) == 0;
    case 'o':
        return keeper_follow(value);
    case 'r':
        if (!number(value, 0, 1 << 20, &parsed))
            return false;
        command->ready_fd = (int)parsed;
        return true;
    }
    return false;
}

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "localhost") == 0 ||
           strcmp(address, "::1") == 0 || strcmp(address, "[::1]") == 0;
}

/* Checks that the options go together. Returns false, after a message, if not. */
static bool check_options(const struct command *command)
{
    const struct controller_options *with = &command->options;
    const char *wrong = NULL;
    if (!with->tls_cert != !with->tls_key)
        wrong = "--tls-cert and --tls-key go together";
    else if (with->loopback_http && (!with->tls_cert || !with->authenticate))
        wrong = "--loopback-http needs --tls-cert, and users (--client-ca, --tokens)";
    else if (with->access.client_ca && !with->tls_cert)
        wrong = "--client-ca needs --tls-cert";
    else if (with->access.tokens && !with->tls_cert && !is_loopback(with->api_address))
        wrong = "tokens would cross the network in the clear: --tokens needs --tls-cert, or an --api on a "
                "loopback address";
    else if (with->tls_cert && !with->access.client_ca && !command->insecure_agents)
        wrong =
            "--tls-cert without --client-ca leaves the agents' port without TLS, where anyone can pose as "
            "an agent: give --client-ca, or --insecure-agents to allow it";
    else if (!with->tls_cert && !is_loopback(with->agent_address) && !command->insecure_agents)
        wrong =
            "anyone who reaches --agents beyond loopback can pose as an agent: give --tls-cert, --tls-key "
            "and --client-ca, or --insecure-agents to allow it";
    bool shared = command->etcd.options.endpoints != NULL;
    if ((command->step_down || command->advertise) && !shared)
        wrong = "--step-down and --advertise need --etcd";
    else if (shared && with->authenticate && !with->access.account_key)
        wrong = "controllers that share a log sign ServiceAccounts' tokens with one key: give each the same "
                "--service-account-key";
    if (wrong)
        say("%s", wrong);
    return !wrong;
}

static int parse(struct command *command, int argc, char **argv)
{
    static const struct option options[] = {
        {"data", required_argument, NULL, 'd'},
        {"cluster", required_argument, NULL, 'c'},
        {"api", required_argument, NULL, 'a'},
        {"api-host", required_argument, NULL, 'n'},
        {"agents", required_argument, NULL, 'g'},
        {"keep-log", required_argument, NULL, 'k'},
        {"snapshot-every", required_argument, NULL, 's'},
        {"faults", required_argument, NULL, 'f'},
        {"encryption-key-file", required_argument, NULL, 'e'},
        ETCD_PLACE_OPTIONS,
        {"advertise", required_argument, NULL, 'A'},
        {"step-down", no_argument, NULL, 'S'},
        {"ready-fd", required_argument, NULL, 'r'},
        {"follow", required_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},
        {"handshakes", required_argument, NULL, 'm'},
        {"handshakes-per-address", required_argument, NULL, 'M'},
        {"loopback-http", no_argument, NULL, 'l'},
        {"insecure-agents", no_argument, NULL, 'i'},
        {"pod-security", required_argument, NULL, 'p'},
        {"tls-cert", required_argument, NULL, TLS_CERT},
        {"tls-key", required_argument, NULL, TLS_KEY},
        {"client-ca", required_argument, NULL, CLIENT_CA},
        {"tokens", required_argument, NULL, TOKENS},
        {"roles", required_argument, NULL, ROLES},
        {"service-account-key", required_argument, NULL, ACCOUNT_KEY},
        {"anonymous", no_argument, NULL, ANONYMOUS},
        {"audit-log", required_argument, NULL, AUDIT},
        {"audit-policy", required_argument, NULL, POLICY},
        {"audit-max-size", required_argument, NULL, SIZE},
        {"audit-max-files", required_argument, NULL, FILES},
        {0},
    };
    int option, index = 0;
    while ((option = usage_option(argc, argv, "h", options, &index)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            return 1;
        }
        if (option == '?') {
            usage_wrong(usage, NULL);
            return -1;
        }
        if (!parse_option(command, option, optarg)) {
            say("--%s: \"%s\" is not valid", options[index].name, optarg);
            return -1;
        }
    }
    if (command->step_down && command->etcd.options.endpoints && optind == argc)
        return 0;
    if (optind < argc || !command->options.data_dir) {
        usage_wrong(usage, optind < argc ? "too many arguments" : "--data DIR is missing");
        return -1;
    }
    return check_options(command) ? 0 : -1;
}

static void announce(const struct command *command, const struct controller *controller)
{
    const char *roles = command->options.access.roles;
    const struct controller_options *options = &command->options;
    fprintf(stderr, "controller ready: API at %s://%s:%u, agents at %s:%u\n",
            options->tls_cert ? "https" : "http", options->api_address, controller_api_port(controller),
            options->agent_address, controller_agent_port(controller));
    if (roles && access(roles, F_OK) != 0)
        fprintf(stderr, "note: --roles %s does not exist yet; it is read within two seconds once it does\n",
                roles);
    if (!options->tls_cert && !is_loopback(options->api_address))
        fprintf(stderr,
                "warning: the API at %s has no TLS and no authentication: anyone who reaches it may do "
                "everything; --tls-cert, --tls-key and --client-ca restrict it (docs/access.md)\n",
                options->api_address);
    if (!options->tls_cert && !is_loopback(options->agent_address))
        fprintf(stderr,
                "warning: agents at %s need no certificate: anyone who reaches the port can pose as one\n",
                options->agent_address);
}

/* --- running ------------------------------------------------------------------------------------ */

/* The loop and the parts of this process that a signal ends. */
static struct running {
    uv_loop_t loop;
    uv_signal_t term, interrupt, hangup;
    struct standby *standby;       /* NULL: no other controller shares the log */
    struct controller *controller; /* NULL: this controller does not lead */
    bool ending;                   /* by a signal */
    bool hands_over, handed_over;
} running;
static char **own_argv;

/* Replaces the program by itself, as a standby: the state of a controller that has lost the lead is
 * useless. */
static void begin_again(void)
{
    setenv(AGAIN, "1", 1); /* the descriptor of --ready-fd is no longer open */
    execv("/proc/self/exe", own_argv);
    _exit(EXIT_FAILURE);
}

static void on_lost(const char *why)
{
    if (running.ending) {
        fprintf(stderr, "this controller leads no more (%s); it ends, as it was told to\n", why);
        _exit(EXIT_SUCCESS);
    }
    fprintf(stderr, "this controller leads no more (%s); it goes on as a standby\n", why);
    begin_again();
}

static void on_handed_over(void *context)
{
    struct running *it = context;
    it->handed_over = true;
    uv_stop(&it->loop);
}

/* Ends the process. During a handover of the lead, the process ends once the handover is complete. */
static void on_signal(uv_signal_t *handle, int signal_number)
{
    struct running *it = handle->data;
    it->ending = true;
    if (it->controller && it->standby) {
        it->hands_over = true;
        standby_ends(it->standby);
        controller_hand_over(it->controller, on_handed_over, it);
    } else if (it->controller) {
        controller_stop(it->controller);
    } else if (it->standby) {
        standby_leave(it->standby);
    }
}

static void on_step_down(void *context)
{
    struct running *it = context;
    if (it->hands_over)
        return;
    fprintf(stderr, "this controller hands over, as it was asked to, and goes on as a standby\n");
    it->hands_over = true;
    controller_hand_over(it->controller, on_handed_over, it);
}

static uint32_t on_readers(void *context, uint32_t reads)
{
    struct running *it = context;
    if (reads > 0)
        controller_raise_level(it->controller, reads);
    return controller_level(it->controller);
}

static void on_hangup(uv_signal_t *handle, int signal_number)
{
    struct running *it = handle->data;
    struct error error;
    if (it->controller && !it->hands_over && controller_reload(it->controller, &error) < 0)
        fprintf(stderr, "warning: credentials are not read again: %s\n", error.text);
}

static void tell_ready(const struct command *command, uint16_t api_port, uint16_t agent_port)
{
    if (command->ready_fd >= 0 && !getenv(AGAIN))
        dprintf(command->ready_fd, "%u %u\n", api_port, agent_port);
}

/* Makes the standby. A controller that has led before waits for etcd without a limit. */
static int standby_new_patient(struct running *it, const struct standby_options *options, struct error *error)
{
    bool again = getenv(AGAIN) != NULL;
    for (bool said = false;; said = true) {
        int rc = standby_new(&it->loop, options, &it->standby, error);
        if (rc != ERROR_UNAVAILABLE || !again)
            return rc;
        if (!said)
            fprintf(stderr, "%s; this controller waits for it\n", error->text);
        standby_close(it->standby);
        uv_run(&it->loop, UV_RUN_DEFAULT); /* takes signals too */
        standby_free(it->standby);
        it->standby = NULL;
        if (it->ending)
            return rc;
    }
}

/* Begins to follow the log of the leader. */
static int begin_standby(struct command *command, struct running *it, struct error *error)
{
    struct controller_options *options = &command->options;
    struct standby_options with = {.etcd = command->etcd.options,
                                   .api_address = options->api_address,
                                   .api_port = options->api_port,
                                   .advertise = command->advertise,
                                   .clients = options,
                                   .lost = on_lost};
    int rc = 0;
    if (options->encryption_keys)
        rc = store_keys_load(options->encryption_keys, &command->etcd_keys, error);
    with.etcd.keys = command->etcd_keys;
    if (rc == 0)
        rc = standby_new_patient(it, &with, error);
    if (rc == 0) {
        options->api_port = standby_api_port(it->standby);
        tell_ready(command, options->api_port, options->agent_port);
    }
    return rc;
}

static int lead(struct command *command, struct running *it)
{
    struct error error = {0};
    if (controller_new(&it->loop, &command->options, &it->controller, &error) < 0) {
        say("%s", error.text);
        it->controller = NULL;
        return 1;
    }
    if (it->standby) {
        standby_serving(it->standby);
        standby_on_step_down(it->standby, on_step_down, it);
        standby_on_readers(it->standby, on_readers, it);
    } else {
        tell_ready(command, controller_api_port(it->controller), controller_agent_port(it->controller));
    }
    if (command->ready_fd < 0)
        announce(command, it->controller);
    do
        uv_run(&it->loop, UV_RUN_DEFAULT);
    while (it->hands_over && !it->handed_over); /* the standby may have stopped the loop */
    controller_free(it->controller);
    it->controller = NULL;
    return 0;
}

/* Follows, leads, hands over and follows again, until a signal. */
static int run_shared(struct command *command, struct running *it)
{
    struct error error = {0};
    int status = 0, rc = begin_standby(command, it, &error);
    while (rc == 0 && status == 0) {
        uv_run(&it->loop, UV_RUN_DEFAULT);
        rc = standby_failed(it->standby, &error);
        if (rc < 0 || !standby_leads(it->standby))
            break;
        command->options.shared = standby_shared(it->standby);
        it->hands_over = it->handed_over = false;
        status = lead(command, it);
        if (status == 0)
            standby_follow_on(it->standby);
        if (status == 0 && it->ending)
            standby_leave(it->standby);
    }
    if (rc < 0)
        say("%s", error.text);
    return rc < 0 ? 1 : status;
}

static int run(struct command *command)
{
    struct running *it = &running;
    uv_signal_t *handles[] = {&it->term, &it->interrupt, &it->hangup};
    int numbers[] = {SIGTERM, SIGINT, SIGHUP}, status = 0;
    uv_loop_init(&it->loop);
    for (int i = 0; i < 3; i++) {
        uv_signal_init(&it->loop, handles[i]);
        handles[i]->data = it;
        uv_signal_start(handles[i], numbers[i] == SIGHUP ? on_hangup : on_signal, numbers[i]);
        uv_unref((uv_handle_t *)handles[i]);
    }
    status = command->etcd.options.endpoints ? run_shared(command, it) : lead(command, it);
    standby_close(it->standby);
    for (int i = 0; i < 3; i++)
        uv_close((uv_handle_t *)handles[i], NULL);
    uv_run(&it->loop, UV_RUN_DEFAULT); /* closes the remaining handles */
    standby_free(it->standby);
    store_keys_free(command->etcd_keys);
    uv_loop_close(&it->loop);
    return status;
}

static int ask_step_down(struct command *command)
{
    struct etcd_log *log;
    struct etcd_seen seen;
    struct error error = {0};
    int rc = etcd_log_open(&command->etcd.options, &log, &error);
    if (rc == 0) {
        rc = etcd_log_ask_step_down(log, &seen, &error);
        etcd_log_close(log);
    }
    if (rc < 0)
        say("%s", error.text);
    else
        output_print("%s is asked to hand over\n", seen.who);
    return rc < 0 ? 1 : 0;
}

int cmd_controller(int argc, char **argv)
{
    struct command command = {
        .options = {.api_address = "127.0.0.1",
                    .api_port = 7070,
                    .agent_address = "127.0.0.1",
                    .agent_port = 7071},
        .ready_fd = -1,
    };
    int parsed = parse(&command, argc, argv);
    if (parsed != 0)
        return parsed > 0 ? 0 : 2;
    if (command.step_down)
        return ask_step_down(&command);
    own_argv = argv - 1;
    if (!command.options.faults && access(FAULTS_DEFAULT, R_OK) == 0)
        command.options.faults = FAULTS_DEFAULT;
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) { /* two sockets for each agent: connection and tether */
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    struct cluster cluster = {0};
    struct buf json BUF_CLEANUP = {0};
    if (command.cluster_path) {
        if (!cluster_file_load(command.cluster_path, &cluster, &json))
            return 1;
        cluster_done(&cluster);
        command.options.cluster_json = buf_str(&json);
    }
    signal(SIGPIPE, SIG_IGN);
    os_umask_own();
    return run(&command);
}
