/* audit.h - the audit log. Private to access.
 *
 * One line for each request, as JSON in the form of audit.k8s.io/v1 Event, so that existing readers work.
 * Lines go into a buffer of AUDIT_BUFFER_BYTES; a thread writes them, so a slow disk never holds the loop.
 * When the buffer is full lines are dropped and counted; the next line that fits is preceded by one that
 * says how many are missing. A line is in the kernel's hands a moment after its answer was sent and on the
 * disk (fdatasync) within a second: a crash of the process loses the buffer, one of the machine about a
 * second.
 *
 * A file that grows beyond audit_bytes_max is renamed to NAME.1 (NAME.1 to NAME.2 ...), the oldest goes.
 *
 * What is written is a matter of the policy (audit.k8s.io/v1 Policy: the first rule that matches decides the
 * level None, Metadata or Request; RequestResponse counts as Request). Bodies of secrets, tokens and reviews
 * of tokens are never written, whatever the policy says.
 */
#ifndef PHX_HOST_ACCESS_AUDIT_H
#define PHX_HOST_ACCESS_AUDIT_H

#include "host/access/access.h"

struct audit;
/* No options.audit: every function below does nothing. */
int audit_new(const struct access_options *options, struct audit **ret_audit, struct error *error);
void audit_free(struct audit *audit); /* writes what is in the buffer; NULL is allowed */
/* `policy`: a file, or NULL for the default. */
int audit_reload(struct audit *audit, const char *policy, struct error *error);
void audit_write(struct audit *audit, const struct access_record *record);
uint64_t audit_dropped(const struct audit *audit);

enum audit_level { AUDIT_NONE, AUDIT_METADATA, AUDIT_REQUEST };
/* Returns the level that the policy document (NULL: the default) sets for this request. */
enum audit_level audit_level_of(const struct doc *policy, const struct access_record *record);
/* Appends the audit line of the request, with its newline. */
void audit_format(struct buf *out, enum audit_level level, const struct access_record *record);

#endif
