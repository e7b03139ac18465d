/* phalanx flow worker: runs the process that drives all devices of one host. */
#include <stdio.h>
#include <stdlib.h>

#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/flow.h"
#include "cmd/usage.h"
#include "flow/host/host.h"

static const char flow_worker_usage[] =
    "Usage: phalanx flow worker --head ADDRESS --listen ADDRESS [options]\n"
    "\n"
    "Runs the worker of one host until SIGINT or SIGTERM, or until the head is gone for good. Prints\n"
    "\"ready HOST\" once the head knows it.\n"
    "\n"
    "Options:\n"
    "  --head ADDRESS     of the head: unix:PATH or HOST:PORT\n"
    "  --listen ADDRESS   for clients and other workers, as they reach it; port 0: any\n"
    "  --devices N        devices of this host (default 1)\n"
    "  --memory BYTES     of one device (default 1G; k, M, G)\n"
    "  --host-memory BYTES\n"
    "                     for values that leave the devices' memory when it is short; 0: none leaves\n"
    "                     (default: as much as all devices have together)\n"
    "  --island NAME      island of the host (default main)\n"
    "  --token-file FILE  the head's token (default: the file \"token\" beside the head's unix socket, of\n"
    "                     PHX_FLOW_TOKEN, or the file PHX_FLOW_TOKEN_FILE)\n"
    "  --transport NAME   between hosts: socket (default), ucx, or auto: ucx where this machine has RDMA\n"
    "                     hardware. Both ends have to say so; the others stay on sockets\n"
    "  --head-grace S     seconds to seek a head that is gone, keeping all values (default 30)\n"
    "  --save-dir DIR     folder for the values of suspended clients (default $TMPDIR or /var/tmp)\n"
    "  --functions DIR    shared objects that programs may name\n"
    "  --pjrt FILE        a PJRT plugin, which runs what it can; the processor does the rest\n"
    "  --work-limit N     operations on elements that one call of StableHLO may take (default 0: no limit)\n"
    "  --help             this text\n";

static bool flow_read_bytes(const char *text, int64_t least, uint64_t *ret)
{
    struct str number = str_from(text);
    uint64_t unit = 1;
    if (number.len) {
        char last = number.data[number.len - 1];
        unit = last == 'k' ? 1000 : last == 'M' ? 1000000 : last == 'G' ? 1000000000 : 1;
        number.len -= unit > 1;
    }
    int64_t value;
    if (!str_to_i64(number, least, INT64_MAX / 1000000000, &value))
        return false;
    *ret = (uint64_t)value * unit;
    return true;
}

static bool flow_worker_option(struct flow_worker_options *worker, int letter)
{
    int64_t number;
    switch (letter) {
    case 'H':
        worker->head = optarg;
        return true;
    case 'l':
        worker->listen = optarg;
        return true;
    case 'i':
        worker->island = optarg;
        return usage_value(optarg[0] != 0 && str_from(optarg).len < 64);
    case 't':
        worker->token_file = optarg;
        return true;
    case 'T':
        return usage_value(wire_transport_parse(optarg, &worker->transport));
    case 'g':
        return usage_value(str_to_i64(str_from(optarg), 0, 86400, &worker->head_grace_s));
    case 's':
        worker->save_dir = optarg;
        return true;
    case 'f':
        worker->functions = optarg;
        return true;
    case 'p':
        worker->pjrt = optarg;
        return true;
    case 'd':
        if (!usage_value(str_to_i64(str_from(optarg), 1, 256, &number)))
            return false;
        worker->devices = (uint32_t)number;
        return true;
    case 'w':
        if (!usage_value(str_to_i64(str_from(optarg), 0, INT64_MAX, &number)))
            return false;
        worker->work_limit = (uint64_t)number;
        return true;
    case 'm':
        return usage_value(flow_read_bytes(optarg, 1, &worker->device_bytes));
    case 'M':
        return usage_value(flow_read_bytes(optarg, 0, &worker->host_bytes));
    }
    return false;
}

int flow_worker(int argc, char **argv)
{
    static const struct option options[] = {{"head", required_argument, NULL, 'H'},
                                            {"listen", required_argument, NULL, 'l'},
                                            {"devices", required_argument, NULL, 'd'},
                                            {"memory", required_argument, NULL, 'm'},
                                            {"host-memory", required_argument, NULL, 'M'},
                                            {"island", required_argument, NULL, 'i'},
                                            {"token-file", required_argument, NULL, 't'},
                                            {"functions", required_argument, NULL, 'f'},
                                            {"pjrt", required_argument, NULL, 'p'},
                                            {"work-limit", required_argument, NULL, 'w'},
                                            {"transport", required_argument, NULL, 'T'},
                                            {"head-grace", required_argument, NULL, 'g'},
                                            {"save-dir", required_argument, NULL, 's'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct flow_worker_options worker = {
        .devices = 1, .device_bytes = 1000000000, .island = "main", .head_grace_s = 30, .ready = stdout};
    worker.host_bytes = UINT64_MAX; /* not given */
    int letter;
    worker.save_dir = getenv("TMPDIR");
    if (!worker.save_dir || worker.save_dir[0] == 0)
        worker.save_dir = "/var/tmp"; /* /tmp is memory on many machines */
    while ((letter = usage_option(argc, argv, "h", options, NULL)) != -1) {
        if (letter == 'h') {
            fputs(flow_worker_usage, stdout);
            return EXIT_OK;
        }
        if (!flow_worker_option(&worker, letter))
            return usage_wrong(flow_worker_usage, NULL);
    }
    if (!worker.head || !worker.listen || optind < argc)
        return usage_wrong(flow_worker_usage,
                           optind < argc ? "too many arguments" : "--head and --listen are needed");
    if (worker.host_bytes == UINT64_MAX)
        worker.host_bytes = worker.device_bytes <= (uint64_t)INT64_MAX / worker.devices
                                ? worker.devices * worker.device_bytes
                                : INT64_MAX;
    setenv("OMP_NUM_THREADS", "1", 0); /* devices have threads of their own */
    struct error error;
    worker.stop_fd = flow_stop_signals();
    if (flow_worker_run(&worker, &error) < 0) {
        say("%s", error.text);
        return EXIT_FAILED;
    }
    return EXIT_OK;
}
