/* schema_table.h - short forms for the rows of the schema tables. Included by schema_*.c only.
 *
 * Each field is one row: FORM(name, ...) with designated extras, such as `REQUIRED` or `DEFAULT("TCP")`.
 */
#ifndef PHX_CORE_SPEC_SCHEMA_TABLE_H
#define PHX_CORE_SPEC_SCHEMA_TABLE_H

#include "core/spec/schema.h"

/* An array of rows. The row without a name ends it. */
#define TABLE(...)                                                                                           \
    (const struct schema_field[])                                                                            \
    {                                                                                                        \
        __VA_ARGS__,                                                                                         \
        {                                                                                                    \
            .name = NULL                                                                                     \
        }                                                                                                    \
    }

#define FIELD(n, k, ...)                                                                                     \
    {                                                                                                        \
        .name = (n), .name_len = sizeof(n) - 1, .kind = (k), ##__VA_ARGS__                                   \
    }
#define STRING(n, ...)       FIELD(n, SCHEMA_STRING, ##__VA_ARGS__)
#define BOOLEAN(n, ...)      FIELD(n, SCHEMA_BOOL, ##__VA_ARGS__)
#define INT32(n, ...)        FIELD(n, SCHEMA_INT32, ##__VA_ARGS__)
#define INT64(n, ...)        FIELD(n, SCHEMA_INT64, ##__VA_ARGS__)
#define QUANTITY(n, ...)     FIELD(n, SCHEMA_QUANTITY, ##__VA_ARGS__)
#define PORT(n, ...)         FIELD(n, SCHEMA_INT_OR_STRING, ##__VA_ARGS__)
#define STRINGS(n, ...)      FIELD(n, SCHEMA_STRING, .list = SCHEMA_ATOMIC, ##__VA_ARGS__)
#define STRING_SET(n, ...)   FIELD(n, SCHEMA_STRING, .list = SCHEMA_SET, ##__VA_ARGS__)
#define INTS(n, ...)         FIELD(n, SCHEMA_INT32, .list = SCHEMA_SET, ##__VA_ARGS__)
#define STRING_MAP(n, ...)   FIELD(n, SCHEMA_STRING_MAP, ##__VA_ARGS__)
#define QUANTITY_MAP(n, ...) FIELD(n, SCHEMA_QUANTITY_MAP, ##__VA_ARGS__)
#define ANYTHING(n, ...)     FIELD(n, SCHEMA_ANY, ##__VA_ARGS__)
#define OBJECT(n, o, ...)    FIELD(n, SCHEMA_OBJECT, .object = &(o), ##__VA_ARGS__)
#define LIST(n, o, ...)      FIELD(n, SCHEMA_OBJECT, .list = SCHEMA_ATOMIC, .object = &(o), ##__VA_ARGS__)
#define KEYED(n, o, k, ...)                                                                                  \
    FIELD(n, SCHEMA_OBJECT, .list = SCHEMA_KEYED, .object = &(o), .keys = (k), ##__VA_ARGS__)

#define REQUIRED   .required = true
#define ENUM(v)    .values = (v)
#define AT_MOST(n) .items_max = (n)
#define DEFAULT(d) .fallback = (d)
#define DOUBLES    .doubles = true

#endif
