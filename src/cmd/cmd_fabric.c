/* phalanx fabric: shapes of slices, plans of cross-connects, and routes with their proofs. Only diff, apply,
 * clear and optics talk to switches. */
#include <stdio.h>
#include <string.h>

#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/fabric_asked.h"
#include "cmd/usage.h"

static const char usage[] =
    "Usage: phalanx fabric check|route|simulate|session|collective|defrag SHAPE [OPTIONS]\n"
    "       phalanx fabric plan SHAPE --cubes LIST [OPTIONS]\n"
    "       phalanx fabric diff|apply SHAPE --cubes LIST --switches FILE [OPTIONS]\n"
    "       phalanx fabric clear --cubes LIST --switches FILE [OPTIONS]\n"
    "       phalanx fabric optics --switches FILE [OPTIONS]\n"
    "       phalanx fabric availability|place [OPTIONS]\n"
    "\n"
    "Slices of an optically switched pod (docs/fabric.md); defrag alone asks a controller. A SHAPE is\n"
    "4x4x8, or 4x4x8-twisted. `phalanx fabric ACTION --help` has the options and examples of one action.\n"
    "\n";

struct action_row {
    const char *name;
    enum fabric_action action;
    bool takes_shape;
    int (*run)(const struct fabric_asked *);
    const char *needs; /* options, after the shape; NULL: none */
    const char *brief; /* a line of `phalanx fabric --help` */
    const char *about; /* more lines of its own --help */
    const char *examples;
    const char *status; /* meaning of exit status 1 */
};

static const struct action_row actions[] = {
    {"check", FABRIC_CHECK, true, fabric_run_check, NULL, "says what a shape is made of, or why it is none",
     "",
     "  phalanx fabric check 4x4x8-twisted\n"
     "  phalanx fabric check 8x8x16-twisted --svg slice.svg\n",
     "there is no such shape"},
    {"plan", FABRIC_PLAN, true, fabric_run_plan, " --cubes LIST",
     "prints what each switch removes and adds to form a slice",
     "3-9 joins the plus end of cube 3 with the minus end of cube 9; with -o json, ports of switches.\n",
     "  phalanx fabric plan 4x4x8-twisted --cubes 3,9\n"
     "  phalanx fabric plan 4x4x8 --cubes 3,9 --running 4x4x4:5 --switch-out x5\n",
     "refused"},
    {"route", FABRIC_ROUTE, true, fabric_run_tables, NULL,
     "builds forwarding tables, proves them, and prints the load of the busiest link",
     "The load is compared with the least that any tables can have.\n",
     "  phalanx fabric route 8x8x8 --switch-out x5\n"
     "  phalanx fabric route 4x4x8 --link-out 0,3,2,y+ --svg loads.svg\n",
     "refused: the links that are alive do not connect all chips"},
    {"simulate", FABRIC_SIMULATE, true, fabric_run_tables, NULL,
     "sends packets through such tables, with finite buffers and credits",
     "The time is compared with the bound; a deadlock is found and named.\n",
     "  phalanx fabric simulate 8x8x8 --traffic all-reduce\n"
     "  phalanx fabric simulate 4x4x8 --switch-out z5 --cycles 1000000 --buffers 1 --pace 0\n",
     "refused, or a deadlock"},
    {"session", FABRIC_SESSION, true, fabric_run_session, NULL,
     "brings a slice up on emulated chips, sends data, and ends it",
     "Discovery, check of every wire, tables, one start. A wire that is wrong is named.\n",
     "  phalanx fabric session 8x8x8 --switch-out x5\n"
     "  phalanx fabric session 4x4x12 --cubes 3,1,4 --cross z6:3,1\n",
     "the slice did not come up"},
    {"collective", FABRIC_COLLECTIVE, true, fabric_run_tables, NULL,
     "prints what all-reduce, all-to-all and others cost by the loads of links", "",
     "  phalanx fabric collective 8x8x8 --bytes 64M\n"
     "  phalanx fabric collective 4x4x8 --switch-out z5 -o json\n",
     "refused"},
    {"diff", FABRIC_DIFF, true, fabric_run_live, " --cubes LIST --switches FILE",
     "prints what real switches would change to form a slice", "Reads the switches, and changes nothing.\n",
     "  phalanx fabric diff 4x4x8 --cubes 3,9 --switches switches.yaml\n",
     "refused or failed, or something would change"},
    {"apply", FABRIC_APPLY, true, fabric_run_live, " --cubes LIST --switches FILE",
     "forms a slice on real switches, and reads them back",
     "Works on all switches at once. When one fails, the others take back what they did.\n",
     "  phalanx switch-sim --write switches.yaml &\n"
     "  phalanx fabric apply 4x4x8-twisted --cubes 3,9 --switches switches.yaml\n"
     "  phalanx fabric apply 4x4x8 --cubes 0,1 --cluster clusters/pod2.yaml --switch-out z5\n",
     "refused or failed: the end of each change is printed"},
    {"clear", FABRIC_CLEAR, false, fabric_run_live, " --cubes LIST --switches FILE",
     "parts cubes from all others on real switches", "",
     "  phalanx fabric clear --cubes 3,9 --switches switches.yaml\n",
     "refused or failed: the end of each change is printed"},
    {"optics", FABRIC_OPTICS, false, fabric_run_optics, " --switches FILE",
     "prints what real switches tell of their light, losses, ports and alarms",
     "Reads all switches at once, and changes nothing. Power is that of the light at a port, loss what the\n"
     "factory measured between two ports; - stands for what a switch does not tell.\n",
     "  phalanx fabric optics --switches switches.yaml\n"
     "  phalanx fabric optics --cluster clusters/pod2.yaml --paths\n",
     "a switch does not answer, or has a failed port or an alarm"},
    {"availability", FABRIC_AVAILABILITY, false, fabric_run_availability, NULL,
     "prints how much of a pod works when hosts fail, with and without switches", "",
     "  phalanx fabric availability --host 0.99 --plot goodput.svg\n"
     "  phalanx fabric availability --pod 144 --whole 130\n",
     "the pod has not as many cubes, or a file cannot be written"},
    {"place", FABRIC_PLACE, false, fabric_run_place, NULL,
     "sends random slices through a pod with broken hosts: chips that are stranded",
     "With switches, with small slices that move, and in contiguous boxes as Slurm's topology/torus3d\n"
     "places them, whose file is read too. The time is in mean times of a slice.\n",
     "  phalanx fabric place --host 0.99 --slices 1000\n"
     "  phalanx fabric place --torus3d topology.yaml --nodes 16 --busy 'm-[01-08]'\n",
     "the file is wrong, or no box is free"},
    {"defrag", FABRIC_DEFRAG, true, fabric_run_defrag, NULL,
     "proposes the fewest small slices to move so that the shape finds a place",
     "Asks a controller for its cubes, slices, machines and tasks. It changes nothing without --move.\n",
     "  phalanx fabric defrag 4x4x4\n"
     "  phalanx fabric defrag 4x4x8 --in pod-1 --moves 3 --move --timeout 10m\n",
     "no such moves would do, or no drain of a cube makes them"},
};
enum { ACTIONS = sizeof actions / sizeof *actions };

static const struct action_row *find_action(const char *word)
{
    for (size_t i = 0; i < ACTIONS; i++)
        if (strcmp(word, actions[i].name) == 0)
            return &actions[i];
    return NULL;
}

/* Prints the help of the first action that the command line names, or of all actions. */
static int help(int argc, char **argv)
{
    struct buf out BUF_CLEANUP = {0};
    const struct action_row *row = NULL;
    for (int i = 1; i < argc && !row; i++)
        row = find_action(argv[i]);
    if (row) {
        buf_printf(&out, "Usage: phalanx fabric %s%s%s [OPTIONS]\n\n%c%s.\n%s\n", row->name,
                   row->takes_shape ? " SHAPE" : "", row->needs ? row->needs : "", row->brief[0] - 'a' + 'A',
                   row->brief + 1, row->about);
        fabric_options_help(&out, row->action);
    } else {
        buf_printf(&out, "%s", usage);
        for (size_t i = 0; i < ACTIONS; i++)
            buf_printf(&out, "  %-14s %s\n", actions[i].name, actions[i].brief);
        buf_printf(&out, "\nOptions of all actions:\n");
        fabric_options_help(&out, UINT32_MAX);
    }
    buf_printf(&out, "\nExamples:\n%s",
               row ? row->examples
                   : "  phalanx fabric route 8x8x8 --switch-out x5\n"
                     "  phalanx switch-sim --write switches.yaml &\n"
                     "  phalanx fabric apply 4x4x8-twisted --cubes 3,9 --switches switches.yaml\n");
    buf_printf(&out, "\nExit status: 0 done, 1 %s, 2 wrong usage.\n",
               row ? row->status : "refused or failed: the reason is printed");
    output_write(&out);
    return EXIT_OK;
}

static int unknown_action(const char *word)
{
    const char *names[ACTIONS];
    for (size_t i = 0; i < ACTIONS; i++)
        names[i] = actions[i].name;
    usage_unknown("action", str_from(word), names, ACTIONS);
    return usage_wrong(usage, NULL);
}

int fabric_refuse(const struct error *error)
{
    say("%s", error->text);
    return EXIT_FAILED;
}

static int run_action(const struct action_row *row, struct fabric_asked *asked, int words, char **argv)
{
    struct error error = {0};
    if (words != row->takes_shape)
        return usage_wrong(usage,
                           row->takes_shape ? "%s: expected one shape, such as 4x4x8"
                                            : "%s: expected no other words than options",
                           row->name);
    if (!fabric_options_fit(row->action, row->name))
        return usage_wrong(usage, NULL);
    if ((row->action & FABRIC_ON_CUBES) && !asked->cubes)
        return usage_wrong(usage, "%s needs%s", row->name, row->needs);
    if ((row->action & FABRIC_ON_SWITCHES) && !asked->switch_list == !asked->cluster)
        return usage_wrong(usage, "%s needs either --switches or --cluster", row->name);
    if (asked->in && !asked->cluster && row->action != FABRIC_DEFRAG)
        return usage_wrong(usage, "--in names a pod of a --cluster file");
    if (row->takes_shape && slice_shape_parse(str_from(argv[0]), &asked->shape, &error) < 0)
        return fabric_refuse(&error);
    asked->action = row->action;
    return row->run(asked);
}

int cmd_fabric(int argc, char **argv)
{
    struct fabric_asked asked;
    fabric_options_default(&asked);
    for (int letter; (letter = usage_option(argc, argv, "ho:", fabric_options(), NULL)) != -1;) {
        if (letter == 'h')
            return help(argc, argv);
        if (!fabric_take_option(&asked, letter, optarg))
            return usage_wrong(usage, NULL);
    }
    if (optind == argc)
        return usage_wrong(usage, "expected an action, such as check");
    const struct action_row *row = find_action(argv[optind]);
    return row ? run_action(row, &asked, argc - optind - 1, argv + optind + 1) : unknown_action(argv[optind]);
}
