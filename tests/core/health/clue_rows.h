/* clue_rows.h - tables of log ends, each with the clue that leads it. */
#ifndef PHX_TESTS_CORE_HEALTH_CLUE_ROWS_H
#define PHX_TESTS_CORE_HEALTH_CLUE_ROWS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/health/clue.h"

struct row {
    const char *text;
    enum clue_kind kind; /* CLUE_NONE: no root, and no symptom either */
};

static inline const char *clue_name_of(enum clue_kind kind)
{
    return kind ? clue_name(kind) : "nothing";
}

static inline void check_rows(const struct row *rows, size_t count)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct clue clues[CLUES_MAX];
        size_t found = clues_read(&arena, str_from(rows[i].text), clues), roots = 0;
        enum clue_kind kind = found && clues[0].kind != CLUE_TEARDOWN ? clues[0].kind : CLUE_NONE;
        for (size_t k = 0; k < found; k++) {
            assert_true(clue_is_valid(&clues[k]));
            roots += clue_class_of(clues[k].kind) == CLUE_IS_ROOT;
        }
        assert_true(roots <= 1);
        if (kind == rows[i].kind)
            continue;
        print_error("row %zu is %s, not %s:\n%s\n", i, clue_name_of(kind), clue_name_of(rows[i].kind),
                    rows[i].text);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof(*(rows)))

#endif
