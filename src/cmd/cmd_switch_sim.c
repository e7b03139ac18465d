/* phalanx switch-sim: emulates optical circuit switches on real sockets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cmd/client.h"
#include "cmd/cluster_file.h"
#include "cmd/cmd.h"
#include "cmd/ending.h"
#include "cmd/usage.h"
#include "core/fabric/wiring.h"
#include "doc/json.h"
#include "host/fabric/switches.h"
#include "sim/fabric/ocs_serve.h"

static const char usage[] =
    "Usage: phalanx switch-sim [OPTIONS]\n"
    "\n"
    "Emulates the optical switches of a pod (docs/fabric.md): each serves SCPI, TL1 or both at a TCP\n"
    "port of its own until the command is interrupted. Mirrors take their time, light follows the\n"
    "cross-connects, and a script breaks things.\n"
    "  --switches N       so many, from x0 on (48)\n"
    "  --cubes N          of the pod: ports of a switch are 64+64 for up to 64 cubes, else 150+150 (64)\n"
    "  --protocol P       scpi, tl1 or both (both)\n"
    "  --listen ADDRESS   IPv4 (127.0.0.1)\n"
    "  --port P           the first port; SCPI has P to P+N-1, TL1 the ports behind them. 0: free\n"
    "                     ones (5025)\n"
    "  --write FILE       leaves a list of the switches there, for `phalanx fabric apply --switches FILE`\n"
    "  --tuning TIME      until mirrors have settled (25ms)\n"
    "  --script FILE      what happens, and when: a YAML list (docs/fabric.md); - is standard input\n"
    "  --user NAME        TL1 sessions must log in (ACT-USER) as NAME before anything else; with\n"
    "                     --secret-file. SCPI has no login\n"
    "  --secret-file FILE its first line is the password of --user\n"
    "  --seed N           of the insertion losses (1)\n"
    "  --chips DIR        emulates the chips of the pod, too, for tasks that use libphalanx_fabric: a\n"
    "                     socket DIR/CUBE-MACHINE for each machine; with --cubes\n"
    "  --light DIR        gives light to chips that `phalanx chip-sim --network DIR` emulates, a process\n"
    "                     for each machine; with --cubes\n"
    "  --orders           each line of standard input is a script that is carried out at once\n"
    "  --help             this text\n"
    "\n"
    "Examples:\n"
    "  phalanx switch-sim --write switches.yaml &\n"
    "  phalanx fabric apply 4x4x8-twisted --cubes 3,9 --switches switches.yaml\n"
    "  printf ':oxc:swit:conn:stat?\\n' | nc -q1 127.0.0.1 5025\n"
    "  echo '- {at: 2s, switch: x5, do: stick, ports: [4]}' | phalanx switch-sim --script -\n"
    "  phalanx switch-sim --cubes 2 --chips /tmp/chips --orders      then type: - {switch: x5, do: die}\n"
    "\n"
    "Exit status: 0 interrupted, 1 failed: the reason is printed, 2 wrong usage.\n";

struct sim_options {
    struct ocs_serve_settings serve;
    struct chips_serve_settings chips; /* folder NULL: none */
    struct light_serve_settings light; /* folder NULL: none */
    const char *script, *write, *secret_file;
    char secret[SWITCH_SECRET_MAX];
};

static bool take_protocol(struct sim_options *options, const char *value)
{
    static const char *const known[] = {"scpi", "tl1", "both"};
    bool both = strcmp(value, "both") == 0;
    options->serve.protocol[OCS_SCPI] = both || strcmp(value, "scpi") == 0;
    options->serve.protocol[OCS_TL1] = both || strcmp(value, "tl1") == 0;
    if (options->serve.protocol[OCS_SCPI] || options->serve.protocol[OCS_TL1])
        return true;
    usage_unknown("protocol", str_from(value), known, 3);
    return false;
}

enum {
    SIM_SWITCHES = 256,
    SIM_CUBES,
    SIM_PROTOCOL,
    SIM_LISTEN,
    SIM_PORT,
    SIM_WRITE,
    SIM_TUNING,
    SIM_SCRIPT,
    SIM_USER,
    SIM_SECRET_FILE,
    SIM_SEED,
    SIM_CHIPS,
    SIM_LIGHT,
    SIM_ORDERS
};

static bool take_sim_option(struct sim_options *options, int letter, const char *value)
{
    int64_t number = 0;
    struct str text = str_from(value);
    switch (letter) {
    case SIM_SWITCHES:
        if (!usage_value(str_to_i64(text, 1, POD_SWITCHES, &number)))
            return false;
        options->serve.switches = (uint32_t)number;
        return true;
    case SIM_CUBES:
        if (!usage_value(str_to_i64(text, 1, POD_CUBES_MAX, &number)))
            return false;
        options->serve.ocs.a_ports = options->serve.ocs.b_ports =
            number <= SMALL_POD_CUBES ? SMALL_POD_CUBES : SLICE_CUBES_MAX;
        options->chips.cubes = options->light.cubes = (uint32_t)number;
        return true;
    case SIM_PROTOCOL:
        return take_protocol(options, value);
    case SIM_LISTEN:
        options->serve.address = value;
        return true;
    case SIM_PORT:
        if (!usage_value(str_to_i64(text, 0, UINT16_MAX, &number)))
            return false;
        options->serve.port = (uint16_t)number;
        return true;
    case SIM_WRITE:
        options->write = value;
        return true;
    case SIM_TUNING:
        return usage_value(duration_parse(text, &options->serve.ocs.tuning_ns) &&
                           options->serve.ocs.tuning_ns >= 0);
    case SIM_SCRIPT:
        options->script = value;
        return true;
    case SIM_USER:
        options->serve.ocs.user = value;
        return usage_value(text.len > 0 && !value[strcspn(value, ":;,&\"")]);
    case SIM_SECRET_FILE:
        options->secret_file = value;
        return true;
    case SIM_SEED:
        if (!usage_value(str_to_i64(text, 0, INT64_MAX, &number)))
            return false;
        options->serve.ocs.seed = (uint64_t)number;
        return true;
    case SIM_CHIPS:
        options->chips.folder = value;
        return true;
    case SIM_LIGHT:
        options->light.folder = value;
        return true;
    case SIM_ORDERS:
        options->serve.orders_fd = STDIN_FILENO;
        return true;
    }
    return false;
}

static void complain(const char *why)
{
    say("order: %s", why);
}

/* Writes the list of switches that host/fabric reads; the file appears whole. */
static bool write_list(const struct sim_options *options, const struct ocs_serve *serve)
{
    enum ocs_protocol protocol = options->serve.protocol[OCS_SCPI] ? OCS_SCPI : OCS_TL1;
    char draft[4096];
    if (snprintf(draft, sizeof draft, "%s.new", options->write) >= (int)sizeof draft)
        return false;
    FILE *file = fopen(draft, "we");
    if (!file)
        return false;
    struct buf login BUF_CLEANUP = {0};
    if (protocol == OCS_TL1 && options->serve.ocs.user) {
        buf_add_str(&login, STR(", user: "));
        json_put_text(&(struct json_writer){.out = &login}, options->serve.ocs.user);
        buf_add_str(&login, STR(", secretFile: "));
        json_put_text(&(struct json_writer){.out = &login}, options->secret_file);
    }
    fputs("# The optical switches of a pod, for `phalanx fabric apply --switches FILE`.\nswitches:\n", file);
    for (uint32_t i = 0; i < options->serve.switches; i++)
        fprintf(file, "- {name: %s, driver: %s, address: \"%s:%u\"%s}\n", pod_switch_name(pod_switch_at(i)),
                protocol == OCS_SCPI ? "scpi" : "tl1", options->serve.address,
                ocs_serve_port(serve, i, protocol), login.len ? login.data : "");
    return fclose(file) == 0 && rename(draft, options->write) == 0;
}

static int serve_switches(const struct sim_options *options, const struct ocs_script *script)
{
    struct ocs_serve *serve;
    struct error error = {0};
    const volatile sig_atomic_t *ends = ending_await();
    if (ocs_serve_open(&options->serve, &serve, &error) < 0) {
        say("%s", error.text);
        return EXIT_FAILED;
    }
    bool good = !options->write || write_list(options, serve);
    if (!good)
        say("--write %s: %m", options->write);
    uint32_t last = options->serve.switches - 1;
    for (int protocol = 0; good && protocol < 2; protocol++)
        if (options->serve.protocol[protocol])
            printf("%s: %u switches at %s:%u to %u\n", protocol == OCS_SCPI ? "scpi" : "tl1", last + 1,
                   options->serve.address, ocs_serve_port(serve, 0, (enum ocs_protocol)protocol),
                   ocs_serve_port(serve, last, (enum ocs_protocol)protocol));
    fflush(stdout);
    if (good)
        ocs_serve_run(serve, script, ends);
    ocs_serve_close(serve);
    return good ? EXIT_OK : EXIT_FAILED;
}

int cmd_switch_sim(int argc, char **argv)
{
    static const struct option options[] = {{"switches", required_argument, NULL, SIM_SWITCHES},
                                            {"cubes", required_argument, NULL, SIM_CUBES},
                                            {"protocol", required_argument, NULL, SIM_PROTOCOL},
                                            {"listen", required_argument, NULL, SIM_LISTEN},
                                            {"port", required_argument, NULL, SIM_PORT},
                                            {"write", required_argument, NULL, SIM_WRITE},
                                            {"tuning", required_argument, NULL, SIM_TUNING},
                                            {"script", required_argument, NULL, SIM_SCRIPT},
                                            {"user", required_argument, NULL, SIM_USER},
                                            {"secret-file", required_argument, NULL, SIM_SECRET_FILE},
                                            {"seed", required_argument, NULL, SIM_SEED},
                                            {"chips", required_argument, NULL, SIM_CHIPS},
                                            {"light", required_argument, NULL, SIM_LIGHT},
                                            {"orders", no_argument, NULL, SIM_ORDERS},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct sim_options asked = {.chips = {.memory_bytes = CHIPS_SERVE_MEMORY},
                                .serve = {.address = "127.0.0.1",
                                          .orders_fd = -1,
                                          .complain = complain,
                                          .port = 5025,
                                          .switches = POD_SWITCHES,
                                          .protocol = {true, true},
                                          .ocs = {.a_ports = SMALL_POD_CUBES,
                                                  .b_ports = SMALL_POD_CUBES,
                                                  .tuning_ns = OCS_TUNING_NS,
                                                  .seed = 1}}};
    for (int letter; (letter = usage_option(argc, argv, "h", options, NULL)) != -1;) {
        if (letter == 'h') {
            fputs(usage, stdout);
            return EXIT_OK;
        }
        if (!take_sim_option(&asked, letter, optarg))
            return usage_wrong(usage, NULL);
    }
    if (optind != argc)
        return usage_wrong(usage, "unexpected argument \"%s\"", argv[optind]);
    if ((asked.chips.folder || asked.light.folder) && asked.chips.cubes == 0)
        return usage_wrong(usage,
                           "--chips and --light need --cubes, the number of cubes whose chips are emulated");
    if (asked.chips.folder && asked.light.folder)
        return usage_wrong(usage, "--chips and --light exclude each other: chips have one emulator");
    if (asked.serve.orders_fd >= 0 && asked.script && strcmp(asked.script, "-") == 0)
        return usage_wrong(usage, "--orders and --script - both read standard input");
    if (!asked.serve.ocs.user != !asked.secret_file ||
        (asked.serve.ocs.user && !asked.serve.protocol[OCS_TL1]))
        return usage_wrong(usage, "--user and --secret-file go together, and are for TL1: SCPI has no login");
    if (asked.chips.folder)
        asked.serve.chips = &asked.chips;
    if (asked.light.folder)
        asked.serve.light = &asked.light;
    struct ocs_script script = {0};
    struct buf text BUF_CLEANUP = {0};
    struct error error = {0};
    asked.serve.ocs.password = asked.secret;
    if (asked.secret_file && switch_secret_read(asked.secret_file, asked.secret, &error) < 0) {
        say("%s", error.text);
        return EXIT_FAILED;
    }
    if (asked.script && !cluster_file_text(asked.script, &text))
        return EXIT_FAILED;
    if (asked.script && ocs_script_parse(buf_str(&text), &script, &error) < 0) {
        say("%s:%s", strcmp(asked.script, "-") == 0 ? "standard input" : asked.script, error.text);
        return EXIT_FAILED;
    }
    int status = serve_switches(&asked, &script);
    ocs_script_done(&script);
    return status;
}
