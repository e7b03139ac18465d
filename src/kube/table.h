/* table.h - `kubectl get` as the server prints it: meta.k8s.io/v1 Table.
 *
 * Columns follow Kubernetes' own printers and the JobSet CRD's; columns of priority 1 show with `-o wide`.
 */
#ifndef PHX_KUBE_TABLE_H
#define PHX_KUBE_TABLE_H

#include "kube/render.h"

struct table_column {
    const char *name, *type, *format, *description;
    int priority;
};
#define TABLE_NAME_COLUMN                                                                                    \
    {                                                                                                        \
        "Name", "string", "name", "Name of the object; unique within a namespace.", 0                        \
    }
#define TABLE_AGE_COLUMN                                                                                     \
    {                                                                                                        \
        "Age", "string", "", "Time since the object was created.", 0                                         \
    }
void table_put_age(struct render *render, int64_t since_ns); /* "5s", "6m12s"; 0: "<unknown>" */

/* The part of the object that a row includes besides its cells. */
enum table_include { INCLUDE_METADATA, INCLUDE_OBJECT, INCLUDE_NONE };

/* Opens a Table, up to its `rows` array, for table_row()s. `columns` false: columnDefinitions is null (from
 * the second event of a watch on). */
void table_begin(struct json_writer *out, const struct resource *resource, const char *version,
                 uint64_t list_version, bool columns);
/* As table_begin in two halves, between which members of its metadata may be written. */
void table_begin_metadata(struct json_writer *out, const char *version);
void table_end_metadata(struct json_writer *out, const struct resource *resource, bool columns);
void table_end(struct json_writer *out);

/* Writes the array of cells of one object. */
void table_cells(struct render *render, const struct resource *resource, struct object_ref object,
                 struct str name);
/* Writes a row from texts made earlier: cells, the object, and the metadata within it. */
void table_row(struct json_writer *out, enum table_include include, const char *version, struct str cells,
               struct str object, struct str metadata);

#endif
