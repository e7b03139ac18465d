/* Pod Security levels: the fields of Kubernetes' Pod Security Standards, with the words of its admission. */
#include "core/spec/spec_test.h"

#include "core/spec/pod_security.h"

/* The fields of every container of a restricted Pod. */
#define HARD                                                                                                 \
    "\"allowPrivilegeEscalation\":false,\"runAsNonRoot\":true,"                                              \
    "\"capabilities\":{\"drop\":[\"ALL\"]},\"seccompProfile\":{\"type\":\"RuntimeDefault\"}"
#define POD(fields, container) "{\"containers\":[{\"name\":\"a\"" container "}]" fields "}"
#define SECURITY(fields)       ",\"securityContext\":{" fields "}"
#define BARE                                                                                                 \
    "allowPrivilegeEscalation != false (container \"a\" must set "                                           \
    "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"a\" must set "  \
    "securityContext.capabilities.drop=[\"ALL\"]), "
#define NON_ROOT "runAsNonRoot != true (pod or container \"a\" must set securityContext.runAsNonRoot=true), "
#define PROFILE                                                                                              \
    "seccompProfile (pod or container \"a\" must set securityContext.seccompProfile.type to "                \
    "\"RuntimeDefault\" or \"Localhost\")"

struct row {
    const char *spec, *baseline, *restricted;
};

static const struct row rows[] = {
    {POD("", ""), "", BARE NON_ROOT PROFILE},
    {POD("", SECURITY(HARD)), "", ""},
    /* The pod speaks for its containers where upstream lets it. */
    {POD(SECURITY("\"runAsNonRoot\":true,\"seccompProfile\":{\"type\":\"RuntimeDefault\"}"),
         SECURITY("\"allowPrivilegeEscalation\":false,\"capabilities\":{\"drop\":[\"ALL\"],\"add\":["
                  "\"NET_BIND_SERVICE\"]}")),
     "", ""},
    {POD(",\"hostNetwork\":true,\"hostPID\":true,\"hostIPC\":false", SECURITY(HARD)),
     "host namespaces (hostNetwork=true, hostPID=true)", "host namespaces (hostNetwork=true, hostPID=true)"},
    {POD(",\"volumes\":[{\"name\":\"v\",\"hostPath\":{\"path\":\"/\"}},{\"name\":\"e\",\"emptyDir\":{}}]",
         SECURITY(HARD)),
     "hostPath volumes (volume \"v\")",
     "restricted volume types (volume \"v\" uses restricted volume type \"hostPath\")"},
    {POD(",\"volumes\":[{\"name\":\"v\",\"hostPath\":{\"path\":\"/\"}},{\"name\":\"n\",\"nfs\":{}}]",
         SECURITY(HARD)),
     "hostPath volumes (volume \"v\")",
     "restricted volume types (volumes \"v\", \"n\" use restricted volume types \"hostPath\", \"nfs\")"},
    {POD("", ",\"ports\":[{\"containerPort\":1},{\"hostPort\":80},{\"hostPort\":81}]" SECURITY(HARD)),
     "hostPort (container \"a\" uses hostPorts 80, 81)", "hostPort (container \"a\" uses hostPorts 80, 81)"},
    {POD("", SECURITY("\"privileged\":true")),
     "privileged (container \"a\" must not set securityContext.privileged=true)",
     "privileged (container \"a\" must not set securityContext.privileged=true), " BARE NON_ROOT PROFILE},
    {POD("", SECURITY("\"capabilities\":{\"add\":[\"SYS_ADMIN\",\"KILL\"]}")),
     "non-default capabilities (container \"a\" must not include \"SYS_ADMIN\" in "
     "securityContext.capabilities.add)",
     "allowPrivilegeEscalation != false (container \"a\" must set "
     "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"a\" must set "
     "securityContext.capabilities.drop=[\"ALL\"]; container \"a\" must not include \"SYS_ADMIN\", \"KILL\" "
     "in securityContext.capabilities.add), " NON_ROOT PROFILE},
    {POD(SECURITY("\"seccompProfile\":{\"type\":\"Unconfined\"}"), SECURITY(HARD)),
     "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")",
     "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")"},
    {POD(SECURITY("\"runAsUser\":0"), SECURITY(HARD ",\"runAsUser\":0")), "",
     "runAsUser=0 (pod and container \"a\" must not set runAsUser=0)"},
    {POD(SECURITY("\"runAsNonRoot\":false"), SECURITY(HARD)), "",
     "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)"},
    {POD("", SECURITY(HARD ",\"appArmorProfile\":{\"type\":\"Unconfined\"}")),
     "forbidden AppArmor profile (container \"a\" must not set AppArmor profile type to \"Unconfined\")",
     "forbidden AppArmor profile (container \"a\" must not set AppArmor profile type to \"Unconfined\")"},
    {POD("", SECURITY(HARD ",\"procMount\":\"Unmasked\"")),
     "procMount (container \"a\" must not set securityContext.procMount to \"Unmasked\")",
     "procMount (container \"a\" must not set securityContext.procMount to \"Unmasked\")"},
    {POD("", ",\"livenessProbe\":{\"httpGet\":{\"host\":\"10.0.0.1\"}},\"lifecycle\":{\"preStop\":{"
             "\"tcpSocket\":{\"host\":\"127.0.0.1\"}}}" SECURITY(HARD)),
     "probe or lifecycle host (container \"a\" uses probe or lifecycle host \"10.0.0.1\")",
     "probe or lifecycle host (container \"a\" uses probe or lifecycle host \"10.0.0.1\")"},
    /* Init and ephemeral containers count, and names keep their order. */
    {"{\"containers\":[{\"name\":\"m\"" SECURITY("\"privileged\":true") "}],\"initContainers\":[{\"name\":"
                                                                        "\"i\"" SECURITY(
                                                                            "\"privileged\":true") "}]}",
     "privileged (containers \"i\", \"m\" must not set securityContext.privileged=true)", NULL},
    /* Wrong types are left to validation. */
    {"{\"containers\":{\"a\":{}},\"volumes\":{\"v\":{}},\"initContainers\":[[]]}", "", NULL},
    {"{\"containers\":7,\"volumes\":[3,\"x\"],\"securityContext\":[]}", "", ""},
    {POD("", SECURITY("\"privileged\":null") ",\"ports\":null"), "", BARE NON_ROOT PROFILE},
};

static void fields(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ARENA_CLEANUP struct arena arena = {0};
        struct doc *spec = parse(&arena, str_from(rows[i].spec));
        for (int level = POD_SECURITY_PRIVILEGED; level <= POD_SECURITY_RESTRICTED; level++) {
            BUF_CLEANUP struct buf why = {0};
            const char *expected = level == POD_SECURITY_PRIVILEGED ? ""
                                   : level == POD_SECURITY_BASELINE ? rows[i].baseline
                                                                    : rows[i].restricted;
            bool violated = pod_security_violated(spec, (enum pod_security_level)level, &why);
            if (!expected)
                continue;
            assert_text(&why, expected);
            assert_int_equal(violated, expected[0] != 0);
        }
    }
}

static void asks_for_root(void **state)
{
    static const struct {
        const char *spec;
        bool root;
    } cases[] = {{POD("", ""), false},
                 {POD("", SECURITY("\"runAsUser\":0")), true},
                 {POD(SECURITY("\"runAsUser\":0"), SECURITY("\"runAsUser\":7")), true},
                 {POD(SECURITY("\"runAsUser\":1000"), ""), false},
                 {POD(SECURITY("\"runAsNonRoot\":false"), ""), false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ARENA_CLEANUP struct arena arena = {0};
        assert_int_equal(pod_security_asks_root(parse(&arena, str_from(cases[i].spec))), cases[i].root);
    }
}

static void labels(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    struct pod_security_policy policy;
    struct doc *space = parse(&arena, STR("metadata: {labels: {pod-security.kubernetes.io/enforce: baseline, "
                                          "pod-security.kubernetes.io/warn: restricted, "
                                          "pod-security.kubernetes.io/warn-version: v1.30}}"));
    pod_security_of(space, POD_SECURITY_PRIVILEGED, &policy);
    assert_int_equal(policy.modes[POD_SECURITY_ENFORCE].level, POD_SECURITY_BASELINE);
    assert_true(str_is(policy.modes[POD_SECURITY_ENFORCE].version, "latest"));
    assert_int_equal(policy.modes[POD_SECURITY_WARN].level, POD_SECURITY_RESTRICTED);
    assert_true(str_is(policy.modes[POD_SECURITY_WARN].version, "v1.30"));
    assert_int_equal(policy.modes[POD_SECURITY_AUDIT].level, POD_SECURITY_PRIVILEGED);
    pod_security_of(NULL, POD_SECURITY_BASELINE, &policy);
    assert_int_equal(policy.modes[POD_SECURITY_ENFORCE].level, POD_SECURITY_BASELINE);
    assert_int_equal(policy.modes[POD_SECURITY_WARN].level, POD_SECURITY_PRIVILEGED);
    /* An unknown level is the strictest one. */
    space = parse(&arena, STR("metadata: {labels: {pod-security.kubernetes.io/enforce: strict}}"));
    pod_security_of(space, POD_SECURITY_PRIVILEGED, &policy);
    assert_int_equal(policy.modes[POD_SECURITY_ENFORCE].level, POD_SECURITY_RESTRICTED);
}

static void wrong_labels(void **state)
{
    ARENA_CLEANUP struct arena arena = {0};
    BUF_CLEANUP struct buf text = {0};
    struct field_errors errors = {.arena = &arena};
    struct doc *space = NULL;
    struct error error;
    assert_int_equal(json_parse(&arena,
                                STR("{\"metadata\":{\"labels\":{"
                                    "\"pod-security.kubernetes.io/enforce\":\"strict\","
                                    "\"pod-security.kubernetes.io/audit\":\"restricted\","
                                    "\"pod-security.kubernetes.io/audit-version\":\"1.30\"}}}"),
                                &space, &error),
                     0);
    pod_security_check_labels(space, &errors);
    for (size_t i = 0; i < errors.list.len; i++)
        errors.list.items[i].line = 0;
    field_errors_print(&errors, &text);
    assert_text(&text, "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"strict\": must "
                       "be one of privileged, baseline, restricted\n"
                       "metadata.labels[pod-security.kubernetes.io/audit-version]: Invalid value: \"1.30\": "
                       "must be \"latest\" or \"v1.x\"\n");
    field_errors_done(&errors);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields),
        cmocka_unit_test(asks_for_root),
        cmocka_unit_test(labels),
        cmocka_unit_test(wrong_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
