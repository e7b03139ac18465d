/* protobuf_kinds.h - the messages of the kinds that kubectl sends as protobuf, by field number. For
 * protobuf.c and host/api.
 *
 * Source: the generated.proto files of k8s.io/api and k8s.io/apimachinery (meta/v1, core/v1, batch/v1,
 * policy/v1, rbac/v1, scheduling/v1, util/intstr, api/resource). Fields that are missing here are skipped.
 *
 * Kubernetes' encoder writes a field that is not a pointer even when it is empty; such a value is read as
 * absent, as in JSON.
 */
#ifndef PHX_KUBE_PROTOBUF_KINDS_H
#define PHX_KUBE_PROTOBUF_KINDS_H

#include <stddef.h>
#include <stdint.h>

enum protobuf_form {
    PB_TEXT = 1,   /* string */
    PB_TEXTS,      /* repeated string */
    PB_INT,        /* a pointer: 0 means 0 */
    PB_PLAIN_INT,  /* 0: absent */
    PB_BOOL,       /* a pointer */
    PB_PLAIN_BOOL, /* false: absent */
    PB_MESSAGE,    /* empty: absent */
    PB_EMPTY,      /* a message that means something even when empty: emptyDir */
    PB_MESSAGES,   /* repeated */
    PB_INLINE,     /* a message whose members are the parent's in JSON */
    PB_MAP,        /* string to string */
    PB_BYTES_MAP,  /* string to bytes, base64 in JSON */
    PB_QUANTITY,
    PB_QUANTITY_MAP,
    PB_INT_OR_STRING,
};
struct protobuf_field {
    uint32_t number; /* 0 ends a table */
    enum protobuf_form form;
    const char *name;
    const struct protobuf_field *message;
};

/* Returns the fields of a kind's message, or NULL if the kind is not known. */
const struct protobuf_field *protobuf_kind(const char *api_version, const char *kind);

#endif
