/* files.h - reads the documents that -f names: files, directories and standard input. */
#ifndef PHX_CMD_FILES_H
#define PHX_CMD_FILES_H

#include "cmd/client.h"

struct file_doc {
    const char *file; /* as named; "-" is standard input */
    struct doc *doc;
    const struct resource *kind; /* NULL: a kind that is not served */
};
struct file_docs {
    struct arena arena; /* owns the documents */
    VEC(struct file_doc) list;
};

/* Reads FILE, every *.yaml, *.yml and *.json of a directory (in the order of their names), or "-". The
 * members of a `kind: List` become one document each. Returns false after a message, of the form
 * FILE:LINE:COLUMN: message for a mistake in a file. */
bool files_read(const char *path, struct file_docs *docs);
/* Reads each path that -f named, in order, even after a failure. Returns false if one failed. */
typedef VEC(const char *) file_paths;
bool files_read_all(const file_paths *paths, struct file_docs *docs);
void files_done(struct file_docs *docs);

/* Checks a document as the server would: types, rules, unknown fields. Returns false after printing each
 * mistake as FILE:LINE:COLUMN: path: message. */
bool file_doc_check(const struct file_doc *file, bool strict);
/* Prints where and why a document whose `kind` is NULL is not served, and the kind that was probably
 * meant. */
void file_doc_not_served(const struct file_doc *file);

#endif
