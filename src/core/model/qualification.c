#include "core/model/qualification.h"

#include "core/model/model.h"

static const char *const test_names[QUALIFY_TESTS] = {
    [QUALIFY_CPU] = "cpu",           [QUALIFY_MEMORY] = "memory", [QUALIFY_DISK] = "disk",
    [QUALIFY_LOOPBACK] = "loopback", [QUALIFY_GPU] = "gpu",       [QUALIFY_PAIR] = "pair",
};

const struct qualify_figure qualify_figures[QUALIFY_FIGURES] = {
    {"cpu/gflops", QUALIFY_CPU, false, "GFLOP/s"},
    {"memory/mb-per-s", QUALIFY_MEMORY, false, "MB/s"},
    {"disk/write-mb-per-s", QUALIFY_DISK, false, "MB/s"},
    {"disk/read-mb-per-s", QUALIFY_DISK, false, "MB/s"},
    {"disk/sync-ms", QUALIFY_DISK, true, "ms"},
    {"loopback/mb-per-s", QUALIFY_LOOPBACK, false, "MB/s"},
    {"loopback/latency-us", QUALIFY_LOOPBACK, true, "us"},
    {"gpu/devices", QUALIFY_GPU, false, "devices"},
    {"gpu/gflops", QUALIFY_GPU, false, "GFLOP/s"},
    {"pair/mb-per-s", QUALIFY_PAIR, false, "MB/s"},
    {"pair/latency-us", QUALIFY_PAIR, true, "us"},
};

const char *qualify_test_name(enum qualify_test test)
{
    CHECK(test < QUALIFY_TESTS);
    return test_names[test];
}

bool qualify_test_find(struct str name, enum qualify_test *ret_test)
{
    for (int i = 0; i < QUALIFY_TESTS; i++)
        if (str_is(name, test_names[i])) {
            *ret_test = (enum qualify_test)i;
            return true;
        }
    return false;
}

const struct qualify_figure *qualify_figure_find(struct str name)
{
    for (int i = 0; i < QUALIFY_FIGURES; i++)
        if (str_is(name, qualify_figures[i].name))
            return &qualify_figures[i];
    return NULL;
}

bool preflight_mode_find(struct str text, enum preflight_mode *ret_mode)
{
    if (str_is(text, "false"))
        *ret_mode = PREFLIGHT_OFF;
    else if (str_is(text, "true"))
        *ret_mode = PREFLIGHT_ON;
    else if (str_is(text, "pairs"))
        *ret_mode = PREFLIGHT_PAIRS;
    else
        return false;
    return true;
}

static bool fits(const struct qualify_class *class, const struct machine *machine)
{
    for (size_t i = 0; i < class->labels.len; i++) {
        struct str value;
        if (!machine_label(machine, class->labels.items[i].key, &value) ||
            !str_equal(value, class->labels.items[i].value))
            return false;
    }
    return true;
}

const struct qualify_class *qualify_class_of(const struct qualification *settings,
                                             const struct machine *machine)
{
    CHECK(settings->class_count > 0);
    size_t i = 0;
    while (i + 1 < settings->class_count && !fits(&settings->classes[i], machine))
        i++;
    return &settings->classes[i];
}
