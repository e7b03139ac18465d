/* audit.h - the audit log. Private to access.
 *
 * Each request gives one line, a JSON object in the form of audit.k8s.io/v1 Event, so that existing readers
 * work. Lines go into a buffer of AUDIT_BUFFER_BYTES. A thread writes them, so a slow disk never stalls the
 * loop. While the buffer is full, lines are dropped and counted; the next line that fits is preceded by one
 * with the number of missing lines. A line is written a moment after its answer was sent, and is on the disk
 * (fdatasync) within a second: a crash of the process loses the buffer, one of the machine about a second.
 *
 * A file that would grow beyond audit_bytes_max is renamed to NAME.1 (NAME.1 to NAME.2, and so on); the
 * oldest is deleted.
 *
 * The policy (audit.k8s.io/v1 Policy) decides what is written: the first rule that matches gives the level
 * None, Metadata or Request; RequestResponse counts as Request. Bodies of secrets, tokens and token reviews
 * are never written, whatever the policy says.
 */
#ifndef PHX_HOST_ACCESS_AUDIT_H
#define PHX_HOST_ACCESS_AUDIT_H

#include "host/access/access.h"

struct audit;
/* Opens the log and starts its thread. Without options.audit sets *ret_audit to NULL, for which every
 * function below does nothing. */
int audit_new(const struct access_options *options, struct audit **ret_audit, struct error *error);
void audit_free(struct audit *audit); /* writes what is in the buffer first; NULL is fine */
/* Reads the policy file; NULL: keeps the current policy, at first the default. On failure the current policy
 * stays. */
int audit_reload(struct audit *audit, const char *policy, struct error *error);
void audit_write(struct audit *audit, const struct access_record *record);
uint64_t audit_dropped(const struct audit *audit);

enum audit_level { AUDIT_NONE, AUDIT_METADATA, AUDIT_REQUEST };
/* Returns the level that the policy document (NULL: the default) sets for this request. */
enum audit_level audit_level_of(const struct doc *policy, const struct access_record *record);
/* Appends the audit line of the request, with its newline. */
void audit_format(struct buf *out, enum audit_level level, const struct access_record *record);

#endif
