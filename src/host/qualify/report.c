#include "host/qualify/internal.h"

#include <math.h>
#include <stdlib.h>

#include "doc/json.h"

static const char *verdict(const struct qualify_result *result)
{
    return result->skipped ? "skipped" : result->ok ? "passed" : "failed";
}

/* --- for programs --------------------------------------------------------------------------------------- */

static void put_number(struct json_writer *json, const char *key, double value)
{
    struct buf text BUF_CLEANUP = {0};
    json_key(json, key);
    buf_printf(&text, "%.6g", value);
    json_put_raw(json, buf_str(&text));
}

static void put_test(struct json_writer *json, const struct qualify_report *report,
                     const struct qualify_golden *golden, enum qualify_test test)
{
    const struct qualify_result *result = &report->tests[test];
    json_begin_object(json);
    json_pair_text(json, "test", qualify_test_name(test));
    json_pair_text(json, "result", verdict(result));
    if (result->why[0])
        json_pair_text(json, "why", result->why);
    json_pair_int(json, "tookMilliseconds", result->took_ns / NS_PER_MS);
    json_pair_int(json, "limitMilliseconds", result->limit_ns / NS_PER_MS);
    if (result->work_ns > 0)
        json_pair_int(json, "workNanoseconds", result->work_ns);
    json_key(json, "figures");
    json_begin_array(json);
    for (int i = 0; i < QUALIFY_FIGURES; i++) {
        if (qualify_figures[i].test != test || !report->measured[i])
            continue;
        json_begin_object(json);
        json_pair_text(json, "figure", qualify_figures[i].name);
        put_number(json, "value", report->figures[i]);
        if (golden->given[i])
            put_number(json, qualify_figures[i].at_most ? "atMost" : "atLeast", golden->limit[i]);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

void qualify_report_json(const struct qualify_report *report, const struct qualify_golden *golden,
                         struct buf *out)
{
    struct json_writer json = {.out = out};
    json_begin_object(&json);
    json_pair_bool(&json, "ok", report->ok);
    json_key(&json, "tests");
    json_begin_array(&json);
    for (int i = 0; i < QUALIFY_TESTS; i++)
        if (report->tests[i].ran)
            put_test(&json, report, golden, (enum qualify_test)i);
    json_end_array(&json);
    json_end_object(&json);
    buf_add_char(out, '\n');
}

/* --- for people ----------------------------------------------------------------------------------------- */

void qualify_report_text(const struct qualify_report *report, const struct qualify_golden *golden,
                         struct buf *out)
{
    for (int t = 0; t < QUALIFY_TESTS; t++) {
        const struct qualify_result *result = &report->tests[t];
        if (!result->ran)
            continue;
        buf_printf(out, "%-9s %-7s in %.1f s of %.0f s%s%s\n", qualify_test_name((enum qualify_test)t),
                   verdict(result), (double)result->took_ns / 1e9, (double)result->limit_ns / 1e9,
                   result->why[0] ? ": " : "", result->why);
        for (int i = 0; i < QUALIFY_FIGURES; i++) {
            const struct qualify_figure *figure = &qualify_figures[i];
            if (figure->test != (enum qualify_test)t || !report->measured[i])
                continue;
            buf_printf(out, "    %-22s %12.6g %s", figure->name, report->figures[i], figure->unit);
            if (golden->given[i])
                buf_printf(out, " (%s %.6g)", figure->at_most ? "at most" : "at least", golden->limit[i]);
            buf_add_char(out, '\n');
        }
    }
}

/* --- learning ------------------------------------------------------------------------------------------- */

/* A MAD times this estimates a normal distribution's standard deviation (1 / the 75 % quantile of the
 * standard normal distribution). */
#define MAD_TO_SIGMA 1.4826

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

void qualify_learn(const struct qualify_report *reports, size_t count, struct buf *out)
{
    double *values = mem_alloc((count + 1) * sizeof *values);
    buf_printf(out, "golden:");
    size_t written = 0;
    for (int i = 0; i < QUALIFY_FIGURES; i++) {
        size_t len = 0;
        for (size_t r = 0; r < count; r++)
            if (reports[r].measured[i])
                values[len++] = reports[r].figures[i];
        if (len == 0)
            continue;
        double middle = median(values, len);
        for (size_t v = 0; v < len; v++)
            values[v] = fabs(values[v] - middle);
        double mad = median(values, len), slack = fmax(3 * MAD_TO_SIGMA * mad, middle / 20);
        bool counts = str_is(str_from(qualify_figures[i].name), "gpu/devices");
        double limit = counts                       ? middle
                       : qualify_figures[i].at_most ? middle + slack
                                                    : fmax(middle - slack, 0);
        buf_printf(out, "\n  %s: %.6g  # median %.6g, MAD %.3g of %zu runs", qualify_figures[i].name, limit,
                   middle, mad, len);
        written++;
    }
    buf_printf(out, written ? "\n" : " {}\n");
    mem_free(values);
}
