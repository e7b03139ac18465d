/* kube.h - the Kubernetes API without I/O. START HERE.
 *
 * Pure functions over documents and the core's objects, without connections, clocks, threads, users or
 * requests. host/api authenticates and routes requests, calls these functions, and sends the results; a
 * simulated API server can do the same.
 *
 *     write:   protobuf.h -> a document      patch.h, apply.h -> the document that results
 *     read:    resource.h (find, visit) -> select.h (filter) -> render.h or table.h (to bytes)
 *
 *   resource.[ch]    the kinds that the API serves, as one table, and their objects
 *   protobuf.[ch]    Kubernetes' protobuf bodies; protobuf_kinds.[ch] has the numbers of their fields
 *   members.[ch]     members of documents by path
 *   fieldset.[ch]    sets of fields (managedFields), in the form of structured-merge-diff
 *   apply.[ch]       server-side apply; apply_managers.c: the owners of fields
 *   patch.[ch]       JSON patch and merge patch; strategic.c the strategic merge patch
 *   select.[ch]      label and field selectors
 *   render.[ch]      objects as JSON, a render_*.c for each kind; stored.h for kinds of core/object
 *   table.[ch]       the Table form that kubectl prints; table_stored.c for kinds of core/object
 *   usage.[ch]       metrics.k8s.io: the newest measurement of each machine
 *
 * Errors are values of base/error.h. Returned objects point into the core and are valid until its next step.
 * The thread that owns the core calls these functions.
 */
#ifndef PHX_KUBE_KUBE_H
#define PHX_KUBE_KUBE_H

#include "kube/apply.h"
#include "kube/patch.h"
#include "kube/protobuf.h"
#include "kube/render.h"
#include "kube/resource.h"
#include "kube/select.h"
#include "kube/table.h"
#include "kube/usage.h"

#endif
