/* yaml_scalar.h - resolves plain YAML 1.1 scalars, for the reader and the writer of yaml.h; private to them.
 *
 * The rules are those of go-yaml v2's resolver, which reads and writes the files of Kubernetes' users: its
 * words for null and booleans, integers with a base and underscores, floats of yamlStyleFloat. Base-60
 * numbers and timestamps are read as strings, but quoted when written.
 */
#ifndef PHX_DOC_YAML_SCALAR_H
#define PHX_DOC_YAML_SCALAR_H

#include "doc/doc.h"

enum yaml_meaning {
    YAML_STRING,
    YAML_NULL,
    YAML_BOOL,
    YAML_INT,
    YAML_FLOAT,      /* finite */
    YAML_NOT_FINITE, /* .inf, .nan */
};

struct yaml_scalar {
    enum yaml_meaning meaning;
    bool boolean;
    int64_t integer;
    double number;
    bool written; /* YAML_FLOAT: the text is a JSON number; otherwise the number is formatted again */
};

struct yaml_scalar yaml_resolve(struct str text);
/* Returns whether other readers would take the plain text for another type than a string. */
bool yaml_is_ambiguous(struct str text);

#endif
