/* yaml.h - YAML 1.1 (through libyaml) to documents, as Kubernetes reads it (sigs.k8s.io/yaml).
 *
 * Plain scalars resolve to null (~, null, empty), booleans (true/false and yes/no/on/off forms as YAML 1.1 of
 * go-yaml v2 does), integers (decimal, 0x, 0o, 0b, leading 0 octal) and floats; quoted ones are strings. Keys
 * must be scalars. Anchors and aliases work, merge keys (<<) too; the expanded size is bounded, so alias
 * bombs fail with ERROR_LIMIT. JSON texts are accepted: a text whose first byte that is not white space is
 * '{' or '[' goes through json.h, one value after the other, unless "---" lines separate them.
 *
 * The core may not call these functions.
 */
#ifndef PHX_DOC_YAML_H
#define PHX_DOC_YAML_H

#include "doc/doc.h"
#include "base/error.h"

enum { YAML_DEPTH_MAX = 64, YAML_DOCUMENTS_MAX = 1024, YAML_NODES_MAX = 2000000 };

struct doc_list {
    struct doc **items; /* in the arena; empty and null documents are left out */
    size_t len;
};

/* Parses every document of `text`. Memory stays within arena->limit_bytes, which the caller should set (64
 * MiB is reasonable). Errors are ERROR_INVALID / ERROR_LIMIT with "LINE:COLUMN: why" (the caller puts the
 * file name before it). */
int yaml_parse_all(struct arena *arena, struct str text, struct doc_list *ret_docs, struct error *error);

/* Writes block style, as `kubectl -o yaml`: keys in order, strings quoted only where a reader would take them
 * for another type. */
void yaml_write(struct buf *out, const struct doc *doc);

#endif
