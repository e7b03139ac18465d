/* write.h - what the files of the write path share. Private to api.
 *
 *   body.c          from bytes to a document, and from a document to a write that may go to the core
 *   managed.c       who owns its fields (apply.h)
 *   write.c         create, replace; the core's replies, and what is tried again
 *   write_patch.c   the five kinds of patches
 *   write_status.c  status of what another controller manages
 *   write_delete.c  delete, deletecollection, evictions
 */
#ifndef PHX_HOST_API_WRITE_H
#define PHX_HOST_API_WRITE_H

#include "host/api/request.h"

enum {
    WRITE_TRIES_MAX = 16,      /* of a write that lost against another */
    WRITES_PENDING_MAX = 8192, /* with the host at once; beyond: 429 */
    WRITE_RETRY_AFTER_S = 1,
    DELETE_COLLECTION_MAX = 100000,
    DELETE_BATCH = 512, /* deletions of one request with the host at once: one commit */
};

enum patch_form { PATCH_NONE, PATCH_MERGE, PATCH_JSON, PATCH_STRATEGIC, PATCH_APPLY };

struct victim {
    struct str namespace_, name;
};
struct write_job {
    struct write_event event;
    struct str manager; /* fieldManager, or the first word of the User-Agent */
    bool dry_run, force, eviction;
    bool status; /* WRITE_STATUS: of the body only that counts */
    enum patch_form form;
    const struct doc *patch; /* PATCH_NONE: NULL */
    bool own_version;        /* the client named the version it means: no second try */
    struct doc *managed;     /* of an apply: the managedFields to write */
    size_t live_bytes;       /* of the object's text, where the core was asked for it; 0: it was not */
    int tries;
    uint32_t pending;       /* with the host */
    bool queued;            /* in api->retries */
    bool (*prepare)(struct api_request *request); /* write_prepare() */
    bool prepared;
    struct doc *given;      /* of a create or replace: the body */
    struct victim *victims; /* of a deletion of many */
    size_t victim_count, victim_next;
    int failed_code; /* of a deletion of many: the first that failed; 0: none */
    const char *failed_reason;
    struct str failed_message;
};

struct write_job *write_job_new(struct api_request *request, enum write_verb verb);
/* Checks the job's event with the core and hands it to the host. Answers, or leaves the request pending. */
void write_submit(struct api_request *request);
/* Frees what was prepared of the write and not handed over. */
void write_drop_prepared(struct api_request *request);
/* Draws the name of a create that has only a prefix of it; any thread that owns the request. */
void write_draw_name(struct write_job *job);
/* The handler is run again from the loop. */
void write_retry_later(struct api_request *request);
/* The object as the API shows it now, in the request's arena; false: there is none (nothing is answered). */
bool write_read_current(struct api_request *request, struct doc **ret_object);
/* Computes and goes on: beside the loop (work.h) where the object is large, otherwise at once. Only writes of
 * stored objects are: their documents are texts, of which the live one is taken before, while Jobs and Pods
 * are asked of the core. */
void write_beside(struct api_request *request, void (*compute)(struct api_request *request),
                  void (*go_on)(struct api_request *request));
void write_forget_live(struct api_request *request); /* the live text that write_beside() took */
/* Runs `how`, which makes job->event of the request's body, and write_submit() if it returns true: beside the
 * loop or at once as write_beside() does, and of Jobs, Pods and status in turn (work_in_turn()). */
void write_prepare(struct api_request *request, bool (*how)(struct api_request *request));
/* For a PUT of an object that was read: restores members of a Job's or Pod's spec that `object` leaves as the
 * API shows them to the form in which their user wrote them. */
void write_keep_written(struct api_request *request, struct doc *object);

/* For write_run_retries(). */
void write_patch_run(struct api_request *request);
void write_delete_next(struct api_request *request);

/* The media type of the body, without parameters. */
struct str body_media_type(const struct api_request *request);
/* The body as one document; false: an error was answered. */
bool body_parse(struct api_request *request, struct doc **ret_doc);
/* Is the object's status written by another controller (write_status.c), so that the core takes it? */
bool status_is_foreign(struct api_request *request);
/* From `object` to a write of its status: body, if_version, uid_text. False: an error was answered. */
bool status_accept(struct api_request *request, const struct doc *object, struct write_event *write);

/* The metadata of a body, made if it has none; NULL: they are no object, and an error was answered. */
struct doc *body_metadata(struct api_request *request, struct doc *object);

/* Checks `object` against the URL and the schema, removes the fields that the server owns, and fills name,
 * body, if_version and uid_text of `write`. False: an error was answered. */
bool body_accept(struct api_request *request, struct doc *object, bool creating, struct write_event *write);
/* Removes the fields that the server owns or derives. */
void body_strip(const struct resource *resource, struct doc *object);
/* Fills in the members that the API server sets. */
void body_default(struct arena *arena, const struct resource *resource, struct doc *object);

/* Sets metadata.managedFields of the stripped and defaulted `object`. `given`: the client's value (NULL:
 * none). False: an error was answered. */
bool managed_update(struct api_request *request, struct doc *object, const struct doc *given, bool creating);
/* Server-side apply of job->patch to `live` (NULL: the object is new). False: an error was answered. */
bool managed_apply(struct api_request *request, const struct doc *live, struct doc **ret_object);

#endif
