/* signature_rows.h - tables of log ends, each with the signature that leads it. */
#ifndef PHX_TESTS_CORE_HEALTH_SIGNATURE_ROWS_H
#define PHX_TESTS_CORE_HEALTH_SIGNATURE_ROWS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/health/signature.h"

struct row {
    const char *text;
    enum signature_kind kind; /* SIGNATURE_NONE: no root, and no symptom either */
};

static inline const char *signature_name_of(enum signature_kind kind)
{
    return kind ? signature_name(kind) : "nothing";
}

static inline void check_rows(const struct row *rows, size_t count)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct signature signatures[SIGNATURES_MAX];
        size_t found = signatures_read(&arena, str_from(rows[i].text), signatures), roots = 0;
        enum signature_kind kind =
            found && signatures[0].kind != SIGNATURE_TEARDOWN ? signatures[0].kind : SIGNATURE_NONE;
        for (size_t k = 0; k < found; k++) {
            assert_true(signature_is_valid(&signatures[k]));
            roots += signature_class_of(signatures[k].kind) == SIGNATURE_IS_ROOT;
        }
        assert_true(roots <= 1);
        if (kind == rows[i].kind)
            continue;
        print_error("row %zu is %s, not %s:\n%s\n", i, signature_name_of(kind),
                    signature_name_of(rows[i].kind), rows[i].text);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof(*(rows)))

#endif
