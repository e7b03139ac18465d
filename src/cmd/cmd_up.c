/* phalanx up: runs a whole cluster on this machine: a controller and an agent process for each machine of the
 * cluster file, until SIGINT, SIGTERM or SIGHUP. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cluster_file.h"
#include "cmd/cmd.h"
#include "cmd/local.h"
#include "cmd/log_options.h"
#include "cmd/up.h"
#include "cmd/usage.h"
#include "os/file.h"
#include "os/folder.h"

static const char usage[] =
    "Usage: phalanx up [--cluster FILE] [--data DIR] [options]\n"
    "\n"
    "Runs a whole cluster on this machine: a controller, and for every machine of the cluster file an\n"
    "agent process with that machine's address. A controller that dies is started again at once, an\n"
    "agent too while tasks of its machine live; a machine whose every process is dead comes back after\n"
    "--revive. Stops everything at SIGINT, SIGTERM or SIGHUP (not under nohup), at its own death, and\n"
    "by `phalanx down`.\n"
    "\n"
    "Options:\n"
    "  --cluster FILE         the cluster file (default: six machines of four chips,\n"
    "                         written to DIR/default-cluster.yaml)\n"
    "  --data DIR             where log, machines and checkpoints are kept (default ./phalanx-data)\n"
    "  --state-dir DIR        where machines keep their state, --data's machines becoming a link to it:\n"
    "                         with a file system in memory tasks start sooner (default: no link)\n"
    "  --api ADDRESS:PORT     where the API listens (default 127.0.0.1:7070; port 0: any)\n"
    "  --api-host NAME        a name by which clients ask for the API over plain HTTP, beside loopback\n"
    "                         names and its address\n"
    "  --agents ADDRESS:PORT  where agents connect (default 127.0.0.1:7071; port 0: any)\n"
    "  --secure               HTTPS alone: without the plain HTTP by which commands of this user on this\n"
    "                         computer reach the API with a token that they find by themselves\n"
    "  --insecure             no credentials, for anybody: who reaches the API, as every user of this\n"
    "                         computer does, runs commands as you\n"
    "  --revive DURATION      a dead machine comes back after this (default 10s; 0: never)\n"
    "  --log-bytes SIZE       a container's log is rotated at this size, such as 64Mi (default 10Mi)\n"
    "  --log-files N          files kept of each container's log, 1 to 100 (default 5)\n"
    "  --probe-root DIR       each machine's probes look below DIR/NAME: for tests; without it no\n"
    "                         probes run, because all machines are this computer\n"
    "  --probe-settings FILE  limits of the probes (docs/probes.md)\n"
    "  --checkpoint-store S   s3://... or file:///...: the agents' (docs/checkpoints.md)\n"
    "  --task-user USER       the agents', which run as root if this program does (docs/security.md)\n"
    "  --allow-root-tasks     likewise: tasks run as root; needed where they could not reach their files\n"
    "                         as users of their own, because a folder is closed to them\n"
    "  --isolation MODE       likewise: try (default), require or off\n"
    "  --seccomp MODE         likewise: on (default) or off\n"
    "  --hide PATH            likewise; may be repeated\n"
    "  --pod-security LEVEL   the controller's: what namespaces without a label enforce\n"
    "  --handshakes N         the controller's: TLS connections that may shake hands at once\n"
    "  --handshakes-per-address N\n"
    "                         likewise, of one source address\n"
    "  --hooks DIR            scripts that repair machines (docs/repair.md)\n"
    "  --emulate-chips        a process for the chips of each machine whose pod has chips: emulated:DIR/\n"
    "                         {cube}-{machine}; light comes from phalanx switch-sim --light DIR\n"
    "                         (docs/fabric.md)\n"
    "  --quiet                no messages of machines coming and going\n"
    "  --help                 this text\n"
    "\n"
    "The API and the agents have TLS and credentials: DIR/access gets a certificate authority, a client\n"
    "certificate for you and one for each agent; roles come from DIR/access/roles.yaml, whenever it is\n"
    "made; DIR/audit.log gets a line for each request.\n"
    "\n"
    "DIR/ready appears, with the API's URL in it, when every machine has been started; DIR/kubeconfig\n"
    "serves kubectl.\n"
    "\n"
    "Exit status: 0 stopped by a signal, 1 failed, 2 usage.\n";

enum { HANDED_ON_MAX = 24 }; /* options of one kind */
#define HANDED_ON "uRISDLxX"

void up_say(const struct up *up, const char *format, ...)
{
    if (up->quiet)
        return;
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* Writes the built-in cluster to a file, which the controller reads now and whenever it is restarted. */
static bool use_default_cluster(struct up *up, struct buf *json)
{
    snprintf(up->default_cluster, sizeof(up->default_cluster), "%s/default-cluster.yaml", up->data);
    up_write_text(up, "default-cluster.yaml", cluster_file_default);
    up->cluster_path = up->default_cluster;
    return cluster_file_load(up->cluster_path, &up->cluster, json);
}

static bool take_log_option(struct up *up, int option, const char *text)
{
    bool bytes = option == 'b';
    uint64_t size;
    uint32_t files;
    if (!(bytes ? log_bytes_parse(text, &size) : log_files_parse(text, &files))) {
        fprintf(stderr, "phalanx: up: --log-%s: \"%s\" is not a valid value\n", bytes ? "bytes" : "files",
                text);
        return false;
    }
    *(bytes ? &up->log_bytes : &up->log_files) = text;
    return true;
}

static const struct option options[] = {
    {"cluster", required_argument, NULL, 'c'},
    {"data", required_argument, NULL, 'd'},
    {"api", required_argument, NULL, 'a'},
    {"agents", required_argument, NULL, 'g'},
    {"api-host", required_argument, NULL, 'H'},
    {"revive", required_argument, NULL, 'r'},
    {"emulate-chips", no_argument, NULL, 'e'},
    {"quiet", no_argument, NULL, 'q'},
    {"secure", no_argument, NULL, 's'},
    {"insecure", no_argument, NULL, 'i'},
    {"help", no_argument, NULL, 'h'},
    {"state-dir", required_argument, NULL, 'm'},
    {"log-bytes", required_argument, NULL, 'b'},
    {"log-files", required_argument, NULL, 'n'},
    {"probe-root", required_argument, NULL, 'p'},
    {"probe-settings", required_argument, NULL, 'o'},
    {"task-user", required_argument, NULL, 'u'},
    {"allow-root-tasks", no_argument, NULL, 'R'},
    {"isolation", required_argument, NULL, 'I'},
    {"seccomp", required_argument, NULL, 'S'},
    {"hide", required_argument, NULL, 'D'},
    {"pod-security", required_argument, NULL, 'L'},
    {"handshakes", required_argument, NULL, 'x'},
    {"handshakes-per-address", required_argument, NULL, 'X'},
    {"hooks", required_argument, NULL, 'k'},
    {"checkpoint-store", required_argument, NULL, 'K'},
    {0},
};

/* Takes an option of HANDED_ON, to be passed on as --NAME=VALUE. The receiving program checks the value;
 * values with which every agent would end at its start are checked here too. */
static bool hand_on(struct up *up, int option, const char *name, const char *value)
{
    bool to_controller = strchr("LxX", option) != NULL;
    struct words *line = to_controller ? &up->to_controller : &up->to_agents;
    bool good = (option != 'I' || strcmp(value, "try") == 0 || strcmp(value, "require") == 0 ||
                 strcmp(value, "off") == 0) &&
                (option != 'S' || strcmp(value, "on") == 0 || strcmp(value, "off") == 0) &&
                (option != 'D' || value[0] == '/');
    if (!good || line->len >= HANDED_ON_MAX) {
        fprintf(stderr,
                good ? "phalanx: up: --%s: too many such options\n"
                     : "phalanx: up: --%s: \"%s\" is not a valid value\n",
                name, value);
        return false;
    }
    size_t bytes = strlen(name) + (value ? strlen(value) : 0) + 4;
    char *word = mem_alloc(bytes);
    snprintf(word, bytes, value ? "--%s=%s" : "--%s", name, value);
    words_add(line, (const char *const[]){word}, 1);
    up->task_user |= option == 'u';
    up->root_tasks |= option == 'R';
    if (option == 'I')
        up->bridges = strcmp(value, "off") != 0;
    return true;
}

static int parse(struct up *up, int argc, char **argv, const char **ret_data)
{
    int option, index = 0;
    while ((option = usage_option(argc, argv, "h", options, &index)) != -1) {
        if (strchr(HANDED_ON, option) && option != '?') {
            if (hand_on(up, option, options[index].name, optarg))
                continue;
            return -1;
        }
        switch (option) {
        case 'c':
            up->cluster_path = optarg;
            break;
        case 'd':
            *ret_data = optarg;
            break;
        case 'a':
            up->api = optarg;
            break;
        case 'g':
            up->agents = optarg;
            break;
        case 'r':
            if (!duration_parse(str_from(optarg), &up->revive_ns)) {
                fprintf(stderr, "phalanx: up: --revive: \"%s\" is not a duration\n", optarg);
                return -1;
            }
            break;
        case 'b':
        case 'n':
            if (take_log_option(up, option, optarg))
                break;
            return -1;
        case 'q':
        case 'e':
            *(option == 'q' ? &up->quiet : &up->emulates_chips) = true;
            break;
        case 'p':
        case 'o':
            *(option == 'p' ? &up->probe_root : &up->probe_settings) = optarg;
            break;
        case 'k':
            up->hooks = optarg;
            break;
        case 'K':
            up->checkpoint_store = optarg;
            break;
        case 'H':
            up->api_host = optarg;
            break;
        case 'm':
            up->state_dir = optarg;
            break;
        case 's':
        case 'i':
            up->access_mode = option == 's' ? UP_SECURE : UP_INSECURE;
            break;
        case 'h':
            fputs(usage, stdout);
            return 1;
        default:
            usage_wrong(usage, NULL);
            return -1;
        }
    }
    if (optind < argc) {
        usage_wrong(usage, "unexpected argument \"%s\"", argv[optind]);
        return -1;
    }
    return 0;
}

/* Checks that tasks of a cluster of root, which run as other users, can reach their files. */
static bool check_reach(const struct up *up)
{
    char why[LONG_PATH_BYTES];
    if (geteuid() != 0 || up->task_user || up->root_tasks ||
        (local_others_reach(up->data, why) && local_others_reach(up->self, why)))
        return true;
    fprintf(stderr,
            "phalanx: up: tasks have users of their own, who cannot reach their files: %s. Keep the program "
            "and --data where every user may go, or say --allow-root-tasks, with which tasks run as root\n",
            why);
    return false;
}

static int make_and_run(struct up *up, const char *data)
{
    os_umask_own();
    up_choose_way(up);
    ssize_t length = readlink("/proc/self/exe", up->self, sizeof(up->self) - 1);
    struct buf json BUF_CLEANUP = {0};
    if (length < 0 || (up->cluster_path && !cluster_file_load(up->cluster_path, &up->cluster, &json)) ||
        !up_make_folders(up, data))
        return EXIT_FAILED;
    up->self[length] = 0;
    snprintf(up->self_pid, sizeof(up->self_pid), "%d", (int)getpid());
    snprintf(up->api_at, sizeof(up->api_at), "%s", up->api);
    snprintf(up->agents_at, sizeof(up->agents_at), "%s", up->agents);
    int status = EXIT_FAILED;
    if (check_reach(up) && (up->cluster_path || use_default_cluster(up, &json)) && up_make_credentials(up))
        status = up_run(up);
    keeper_end(&up->keeper);
    cluster_done(&up->cluster);
    return status;
}

int cmd_up(int argc, char **argv)
{
    struct up up = {.api = "127.0.0.1:7070",
                    .agents = "127.0.0.1:7071",
                    .log_bytes = "10Mi",
                    .log_files = "5",
                    .revive_ns = 10 * NS_PER_SECOND,
                    .bridges = true};
    const char *data = "phalanx-data";
    int parsed = parse(&up, argc, argv, &data);
    int status = parsed > 0 ? EXIT_OK : EXIT_USAGE;
    if (parsed == 0)
        status = make_and_run(&up, data);
    words_free(&up.to_agents);
    words_free(&up.to_controller);
    return status;
}
