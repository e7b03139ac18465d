/* phalanx certs: makes the cluster's own certificate authority, its certificates, tokens and kubeconfig
 * files. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cmd/usage.h"
#include "cmd/client.h"
#include "host/access/folder.h"

static const char usage[] =
    "Usage: phalanx certs init DIR [--host NAME]...\n"
    "       phalanx certs client DIR --user NAME [--group NAME]... [--days N]\n"
    "       phalanx certs agent DIR --machine NAME\n"
    "       phalanx certs revoke DIR --user NAME | --machine NAME\n"
    "       phalanx certs token DIR --user NAME [--group NAME]...\n"
    "       phalanx certs kubeconfig DIR --server URL[,URL...] --out FILE [--user NAME | --token TOKEN]\n"
    "\n"
    "Keeps a cluster's credentials in DIR. init makes an authority (ca.crt, ca.key), the controller's\n"
    "certificate (server.crt) for its hosts, and admin.crt in the group system:masters; it keeps\n"
    "certificates that are valid for another 30 days. client issues NAME.crt for a user and its\n"
    "groups; agent issues agents/NAME.crt for a machine; revoke deletes such a certificate and its\n"
    "key, and lists it in revoked.crl, which the controller reads again by itself; token prints a new\n"
    "bearer token and adds its digest to tokens.csv; kubeconfig writes a file for kubectl with\n"
    "everything in it, and a context HOST:PORT for each of several servers.\n"
    "\n"
    "Options:\n"
    "  --host NAME       a name or address by which the controller is reached\n"
    "                    (default: localhost, 127.0.0.1 and ::1)\n"
    "  --user NAME       the user; in kubeconfig: whose certificate is embedded\n"
    "  --group NAME      a group of the user; may be repeated\n"
    "  --days N          how long the certificate is valid (default 365)\n"
    "  --machine NAME    a machine's name in the cluster file\n"
    "  --server URLS     the API, such as https://10.0.0.1:7070; of several controllers with\n"
    "                    commas: the first one's context is the current one\n"
    "  --token TOKEN     a bearer token to use instead of a certificate\n"
    "  --namespace NAME  the kubeconfig's namespace\n"
    "  --out FILE        where the kubeconfig is written\n"
    "  --help            this text\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage.\n";

enum { LIST_MAX = 64 };

struct arguments {
    const char *verb, *folder, *user, *machine, *out;
    const char *hosts[LIST_MAX], *groups[LIST_MAX];
    size_t host_count, group_count;
    int64_t days;
    struct folder_config config;
    bool help;
};

static bool take(struct arguments *arguments, int option, const char *value)
{
    switch (option) {
    case 'h':
        if (arguments->host_count == LIST_MAX)
            return false;
        arguments->hosts[arguments->host_count++] = value;
        return true;
    case 'g':
        if (arguments->group_count == LIST_MAX)
            return false;
        arguments->groups[arguments->group_count++] = value;
        return true;
    case 'u':
        arguments->user = value;
        return true;
    case 'm':
        arguments->machine = value;
        return true;
    case 's':
        arguments->config.server = value;
        return true;
    case 't':
        arguments->config.token = value;
        return true;
    case 'n':
        arguments->config.namespace_ = value;
        return true;
    case 'o':
        arguments->out = value;
        return true;
    case 'd':
        return str_to_i64(str_from(value), 1, PKI_AUTHORITY_DAYS, &arguments->days);
    case '?':
        return false;
    default:
        arguments->help = true;
        return true;
    }
}

static bool parse(struct arguments *arguments, int argc, char **argv)
{
    static const struct option options[] = {
        {"host", required_argument, NULL, 'h'},
        {"user", required_argument, NULL, 'u'},
        {"group", required_argument, NULL, 'g'},
        {"days", required_argument, NULL, 'd'},
        {"machine", required_argument, NULL, 'm'},
        {"server", required_argument, NULL, 's'},
        {"token", required_argument, NULL, 't'},
        {"out", required_argument, NULL, 'o'},
        {"namespace", required_argument, NULL, 'n'},
        {"help", no_argument, NULL, 'H'},
        {0},
    };
    int option;
    while ((option = usage_option(argc, argv, "", options, NULL)) != -1)
        if (!usage_value(take(arguments, option, optarg)))
            return false;
    if (arguments->help)
        return true;
    if (argc - optind != 2) {
        say(argc - optind < 2 ? "an action and DIR are needed" : "too many arguments");
        return false;
    }
    arguments->verb = argv[optind];
    arguments->folder = argv[optind + 1];
    return true;
}

static int do_init(struct arguments *arguments, struct error *error)
{
    static const char *const local[] = {"localhost", "127.0.0.1", "::1"};
    if (arguments->host_count == 0)
        return folder_init(arguments->folder, local, 3, error);
    return folder_init(arguments->folder, arguments->hosts, arguments->host_count, error);
}

static int do_token(struct arguments *arguments, struct error *error)
{
    char token[PKI_TOKEN_TEXT];
    int rc = folder_token(arguments->folder, arguments->user, arguments->groups, arguments->group_count,
                          token, error);
    if (rc == 0)
        printf("%s\n", token);
    return rc;
}

/* Carries out the action. Returns 0, a negative error, or 1 if an option is missing. */
static int run(struct arguments *arguments, struct error *error)
{
    const char *verb = arguments->verb, *user = arguments->user;
    if (strcmp(verb, "init") == 0)
        return do_init(arguments, error);
    if (strcmp(verb, "client") == 0 && user)
        return folder_client(arguments->folder, user, arguments->groups, arguments->group_count,
                             (int)arguments->days, error);
    if (strcmp(verb, "agent") == 0 && arguments->machine)
        return folder_agent(arguments->folder, arguments->machine, error);
    if (strcmp(verb, "revoke") == 0 && !user != !arguments->machine)
        return folder_revoke(arguments->folder, user, arguments->machine, error);
    if (strcmp(verb, "token") == 0 && user)
        return do_token(arguments, error);
    if (strcmp(verb, "kubeconfig") == 0 && arguments->config.server && arguments->out) {
        arguments->config.folder = arguments->folder;
        arguments->config.user = user ? user : arguments->config.token ? NULL : "admin";
        return folder_kubeconfig(arguments->out, &arguments->config, error);
    }
    return 1;
}

int cmd_certs(int argc, char **argv)
{
    static const char *const verbs[] = {"init", "client", "agent", "revoke", "token", "kubeconfig"};
    struct arguments arguments = {0};
    struct error error = {0};
    if (!parse(&arguments, argc, argv)) {
        return usage_wrong(usage, NULL);
    }
    if (arguments.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    int rc = run(&arguments, &error);
    if (rc > 0) {
        for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
            if (strcmp(arguments.verb, verbs[i]) == 0)
                return usage_wrong(usage, "%s lacks an option", arguments.verb);
        usage_unknown("action", str_from(arguments.verb), verbs, sizeof verbs / sizeof *verbs);
        return usage_wrong(usage, NULL);
    }
    if (rc < 0)
        say("%s", error.text);
    return rc < 0 ? EXIT_FAILED : EXIT_OK;
}
