/* protobuf.h - reads the bodies that kubectl 1.32 and newer sends as protobuf.
 *
 * Format: "k8s\0" and a runtime.Unknown {1: TypeMeta {1: apiVersion, 2: kind}, 2: raw}; `raw` is the message
 * of the kind (k8s.io/apimachinery runtime/generated.proto). protobuf_kinds.h has the messages. Answers are
 * always JSON, which every client accepts.
 */
#ifndef PHX_KUBE_PROTOBUF_H
#define PHX_KUBE_PROTOBUF_H

#include "doc/doc.h"
#include "base/error.h"

#define PROTOBUF_MEDIA_TYPE "application/vnd.kubernetes.protobuf"

/* Reads an object in the form that it has in JSON. `options`: the body is a DeleteOptions, whatever its
 * version. ERROR_UNSUPPORTED: the kind's message is not known; ERROR_INVALID: malformed; ERROR_LIMIT. */
int protobuf_read(struct arena *arena, struct str body, bool options, struct doc **ret_object,
                  struct error *error);
/* Reads a SelfSubjectAccessReview as {"spec": {...}} with resourceAttributes or nonResourceAttributes, or
 * (`rules`) a SelfSubjectRulesReview with its namespace. Returns NULL if malformed. */
struct doc *protobuf_review(struct arena *arena, struct str body, bool rules);

#endif
