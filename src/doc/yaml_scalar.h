/* yaml_scalar.h - what a plain YAML 1.1 scalar means, shared by the reader and the writer of yaml.h (private
 * to them).
 *
 * Follows go-yaml v2's resolver, as that is what reads and writes the files of Kubernetes' users: its lists
 * of words for null and booleans, integers with a base and underscores, floats of yamlStyleFloat; base-60
 * numbers and timestamps read as strings, but are quoted when written.
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
    bool written; /* YAML_FLOAT: the text is already a JSON number; otherwise it is written again */
};

struct yaml_scalar yaml_resolve(struct str text);
/* Whether other readers would take the plain text for something else than a string. */
bool yaml_is_ambiguous(struct str text);

#endif
