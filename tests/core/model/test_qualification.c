/* spec.qualification of the cluster file: classes, what they inherit, the body of an errand that tests one of
 * their machines, and where a mistake is. */
#include "settings.h"

#define HEAD                                                                                                 \
    "apiVersion: phalanx.dev/v1\nkind: Cluster\nmetadata: {name: c}\nspec:\n"                                \
    "  pods: [{addresses: 127.0.1.1, racks: [{machines: 2, chips: 4}, {machines: 1, chips: 8,\n"             \
    "    labels: {gpu: h100}}]}]\n  qualification:\n"

static const struct qualify_class *class_of(const struct cluster *cluster, const char *machine)
{
    return qualify_class_of(&cluster->qualification, cluster_find(cluster, str_from(machine)));
}

static void test_classes_inherit(void **state)
{
    struct cluster cluster;
    struct buf out BUF_CLEANUP = {0};
    assert_true(load(HEAD "    preflight: pairs\n    validFor: 1h\n    timeout: 90s\n    pairTimeout: 5s\n"
                          "    pairPort: 4000\n    tests: [cpu, disk]\n    golden: {cpu/gflops: 12.50}\n"
                          "    classes:\n    - name: big\n      labels: {gpu: h100}\n      seconds: 30\n"
                          "      golden: {gpu/gflops: 40000, pair/latency-us: 20}\n"
                          "    - name: second\n      labels: {phalanx.dev/rack: pod-1.rack-1}\n"
                          "      tests: [memory]\n",
                     &cluster, &out));
    const struct qualification *set = &cluster.qualification;
    assert_int_equal(set->preflight, PREFLIGHT_PAIRS);
    assert_true(set->valid_ns == 3600 * NS_PER_SECOND && set->timeout_ns == 90 * NS_PER_SECOND);
    assert_true(set->pair_timeout_ns == 5 * NS_PER_SECOND && set->pair_port == 4000);
    assert_int_equal(set->class_count, 3);
    assert_true(str_is(class_of(&cluster, "m-3")->body,
                       "{\"tests\":[\"cpu\",\"disk\"],\"seconds\":30,"
                       "\"golden\":{\"gpu/gflops\":40000,\"pair/latency-us\":20}}"));
    assert_true(str_is(class_of(&cluster, "m-1")->name, "second"));
    assert_true(str_is(class_of(&cluster, "m-1")->body,
                       "{\"tests\":[\"memory\"],\"seconds\":5,\"golden\":{\"cpu/gflops\":12.50}}"));
    cluster_done(&cluster);
}

static void test_nothing_is_asked_by_default(void **state)
{
    struct cluster cluster;
    struct buf out BUF_CLEANUP = {0};
    assert_true(load(HEAD "    {}\n", &cluster, &out));
    assert_int_equal(cluster.qualification.preflight, PREFLIGHT_OFF);
    assert_true(cluster.qualification.valid_ns == 24 * 3600 * NS_PER_SECOND);
    assert_true(str_is(class_of(&cluster, "m-1")->name, "default"));
    assert_true(str_is(class_of(&cluster, "m-1")->body, "{\"seconds\":5,\"golden\":{}}"));
    cluster_done(&cluster);
    assert_true(load(HEAD "    {preflight: true}\n", &cluster, &out));
    assert_int_equal(cluster.qualification.preflight, PREFLIGHT_ON);
    cluster_done(&cluster);
}

/* Line and column count from the first line of the file: qualification begins on the 8th. */
static void test_mistakes_have_a_place(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"    preflight: maybe\n", "8:16: spec.qualification.preflight: Unsupported value"},
        {"    validFor: -1s\n", "8:15: spec.qualification.validFor: Invalid value"},
        {"    tests: [cpu, pair]\n", "8:18: spec.qualification.tests[1]: Unsupported value: \"pair\""},
        {"    tests: cpu\n", "8:12: spec.qualification.tests: Invalid value: string"},
        {"    seconds: 0\n", "8:14: spec.qualification.seconds: Invalid value: 0"},
        {"    golden: {cpu/speed: 1}\n", "8:25: spec.qualification.golden.cpu/speed: Unsupported value"},
        {"    golden: {cpu/gflops: fast}\n", "8:26: spec.qualification.golden.cpu/gflops: Invalid value"},
        {"    golden: {cpu/gflops: -1.5}\n", "8:26: spec.qualification.golden.cpu/gflops: Invalid value"},
        {"    golden: 3\n", "8:13: spec.qualification.golden: Invalid value: integer"},
        {"    classes: [{name: a}]\n", "spec.qualification.classes[0].labels: Required value"},
        {"    classes: [{labels: {a: b}}]\n", "spec.qualification.classes[0].name: Required value"},
        {"    classes: [{name: a, labels: {a: 1}}]\n",
         "8:37: spec.qualification.classes[0].labels.a: Invalid value"},
        {"    pairPort: 80\n", "8:15: spec.qualification.pairPort: Invalid value: 80"},
        {"    stragglerPercent: 100\n", "8:23: spec.qualification.stragglerPercent: Invalid value: 100"},
        {"    speed: 1\n", "spec.qualification.speed: unknown field"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cluster cluster;
        struct buf text BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
        buf_printf(&text, HEAD "%s", cases[i].text);
        assert_false(load(text.data, &cluster, &out));
        if (!strstr(out.data, cases[i].message))
            fail_msg("\"%s\" is not in \"%s\"", cases[i].message, out.data);
    }
}

static void test_every_figure_belongs_to_its_test(void **state)
{
    enum qualify_test test;
    for (int i = 0; i < QUALIFY_FIGURES; i++) {
        const struct qualify_figure *figure = &qualify_figures[i];
        const char *name = qualify_test_name(figure->test);
        assert_true(str_starts(str_from(figure->name), str_from(name)) && figure->name[strlen(name)] == '/');
        assert_ptr_equal(qualify_figure_find(str_from(figure->name)), figure);
    }
    for (int i = 0; i < QUALIFY_TESTS; i++)
        assert_true(qualify_test_find(str_from(qualify_test_name((enum qualify_test)i)), &test) &&
                    test == (enum qualify_test)i);
    assert_false(qualify_test_find(STR("speed"), &test));
    assert_null(qualify_figure_find(STR("cpu")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes_inherit),
        cmocka_unit_test(test_nothing_is_asked_by_default),
        cmocka_unit_test(test_mistakes_have_a_place),
        cmocka_unit_test(test_every_figure_belongs_to_its_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
