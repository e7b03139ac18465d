/* write.h - declarations shared by the files of the write path. Private to api.
 *
 *   body.c          from bytes to a document, and from a document to a write for the core
 *   managed.c       owners of fields: metadata.managedFields (apply.h)
 *   write.c         create, replace; the core's replies, and retries
 *   write_patch.c   the kinds of patches
 *   write_status.c  status of objects that another controller manages
 *   write_delete.c  delete, deletecollection, evictions
 */
#ifndef PHX_HOST_API_WRITE_H
#define PHX_HOST_API_WRITE_H

#include "host/api/request.h"

enum {
    WRITE_TRIES_MAX = 16,      /* tries of a write that conflicts with another */
    WRITES_PENDING_MAX = 8192, /* writes that the host has not answered; beyond: 429 */
    WRITE_RETRY_AFTER_S = 1,
    DELETE_COLLECTION_MAX = 100000,
    DELETE_BATCH = 512, /* deletions of one request that the host has at once: one commit */
};

enum patch_form { PATCH_NONE, PATCH_MERGE, PATCH_JSON, PATCH_STRATEGIC, PATCH_APPLY };

struct victim {
    struct str namespace_, name;
};
struct write_job {
    struct write_event event;
    struct str manager; /* fieldManager, or the first word of the User-Agent */
    bool dry_run, force, eviction;
    bool status; /* WRITE_STATUS: only the body's status counts */
    enum patch_form form;
    const struct doc *patch; /* PATCH_NONE: NULL */
    bool own_version;        /* the client gave a resourceVersion: a conflict is answered, not retried */
    struct doc *managed;     /* of an apply: the managedFields to write */
    size_t live_bytes;       /* size of the object's text, if it was rendered from the core; 0: it was not */
    int tries;
    uint32_t pending;                             /* writes of the job that the host has not answered */
    bool queued;                                  /* in api->retries */
    bool (*prepare)(struct api_request *request); /* as passed to write_prepare() */
    bool prepared;
    struct doc *given;      /* of a create or replace: the body */
    struct victim *victims; /* of a deletecollection */
    size_t victim_count, victim_next;
    int failed_code; /* of a deletecollection: the code of the first failure; 0: none */
    const char *failed_reason;
    struct str failed_message;
};

/* Makes the request's write job, in the request's arena. */
struct write_job *write_job_new(struct api_request *request, enum write_verb verb);
/* Checks the job's event with the core, and hands it to the host. Answers, or leaves the request pending. */
void write_submit(struct api_request *request);
/* Frees what was prepared of the write but not handed to the host. */
void write_drop_prepared(struct api_request *request);
/* Draws the random part of a name for a create with generateName. Any thread that owns the request may
 * call. */
void write_draw_name(struct write_job *job);
/* Makes the request pending; the loop tries the write again soon. */
void write_retry_later(struct api_request *request);
/* Sets *ret_object to the object as the API shows it now, in the request's arena. Returns false, and answers
 * nothing, if there is none. */
bool write_read_current(struct api_request *request, struct doc **ret_object);
/* Calls `compute`, then `go_on`: on another thread (work.h) if the object is large, otherwise at once. Only
 * writes of stored objects may use the thread: their live text is taken before. Writes of Jobs and Pods need
 * the core, and so the loop. */
void write_beside(struct api_request *request, void (*compute)(struct api_request *request),
                  void (*go_on)(struct api_request *request));
void write_forget_live(struct api_request *request); /* drops the live text that write_beside() took */
/* Calls `how`, which makes job->event from the request's body, and write_submit() if it returns true. Stored
 * objects are prepared as write_beside() does; Jobs, Pods and status in turn on the loop (work_in_turn()). */
void write_prepare(struct api_request *request, bool (*how)(struct api_request *request));
/* For a PUT of a Job or Pod that its client has read: members of its spec that `object` has as the API shows
 * them are restored to what the user wrote. */
void write_keep_written(struct api_request *request, struct doc *object);

/* Continue a patch and a deletecollection, for write_run_retries(). */
void write_patch_run(struct api_request *request);
void write_delete_next(struct api_request *request);

/* Returns the media type of the body, without parameters. */
struct str body_media_type(const struct api_request *request);
/* Parses the body as one document. Returns false if an error was answered, or if the body is being parsed on
 * another thread, after which the request is handled again. */
bool body_parse(struct api_request *request, struct doc **ret_doc);
/* Makes a write of `object`'s status: fills name, body, if_version and uid_text. Returns false if an error
 * was answered. */
bool status_accept(struct api_request *request, const struct doc *object, struct write_event *write);

/* Returns the metadata of a body, and adds them if there are none. Returns NULL if they are not an object,
 * which was answered. */
struct doc *body_metadata(struct api_request *request, struct doc *object);

/* Checks `object` against the URL and the schema, removes the fields that the server owns, sets defaults, and
 * fills name, body, document, if_version and uid_text of `write`. Returns false if an error was answered. */
bool body_accept(struct api_request *request, struct doc *object, bool creating, struct write_event *write);
/* Removes the fields that the server owns or derives. */
void body_strip(const struct resource *resource, struct doc *object);
/* Sets the defaults of the resource's schema. */
void body_default(struct arena *arena, const struct resource *resource, struct doc *object);

/* Sets metadata.managedFields of `object`, after body_strip() and body_default(). `given` is the client's
 * value (NULL: none). Returns false if an error was answered. */
bool managed_update(struct api_request *request, struct doc *object, const struct doc *given, bool creating);
/* Does a server-side apply of job->patch to `live` (NULL: the object is new). Returns false if an error was
 * answered. */
bool managed_apply(struct api_request *request, const struct doc *live, struct doc **ret_object);

#endif
