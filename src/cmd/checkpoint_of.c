#include "cmd/checkpoint_of.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

bool checkpoint_is_of_job(const char *text)
{
    struct str kind, name;
    const struct resource *resource =
        str_cut(str_from(text), '/', &kind, &name) && kind.len ? kind_find(kind) : NULL;
    bool job = resource && (resource == kind_find(STR("jobset")) || resource == kind_find(STR("job")));
    return job && access(text, F_OK) != 0;
}

/* Ranks of a JobSet with one group store in "<folder>/<group>". */
static int enter_group(struct buf *out, struct str group)
{
    struct buf groups BUF_CLEANUP = {0};
    size_t count = 0;
    char only[256] = "";
    if (group.len) {
        buf_printf(out, "/" STR_FORMAT, STR_ARG(group));
        return EXIT_OK;
    }
    DIR *folder = opendir(out->data);
    if (!folder) {
        say("%s: %s; checkpoints of this cluster are there, perhaps on another machine", out->data,
            strerror(errno));
        return EXIT_NOT_FOUND;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(only, sizeof only, "%s", entry->d_name);
        buf_printf(&groups, "%s%s", count++ ? ", " : "", only);
    }
    closedir(folder);
    if (count != 1) {
        say("%s: name one of its groups of ranks behind the job (jobset/NAME/GROUP): %s", out->data,
            count ? groups.data : "there is none");
        return count ? EXIT_USAGE : EXIT_NOT_FOUND;
    }
    buf_printf(out, "/%s", only);
    return EXIT_OK;
}

int checkpoint_of_job(const char *text, const struct client_options *options, struct buf *out)
{
    const struct resource *kind;
    struct str name, group = {0}, rest;
    struct client client;
    struct client_reply reply;
    struct buf path BUF_CLEANUP = {0};
    if (!kind_split(text, &kind, &name))
        return EXIT_USAGE;
    if (str_cut(name, '/', &rest, &group))
        name = rest;
    const char *namespace_ = client_namespace(options);
    kind_path(&path, kind, namespace_ ? namespace_ : "default", name);
    int rc = client_open(&client, options);
    if (rc == EXIT_OK)
        rc = client_get(&client, buf_str(&path), &reply);
    if (rc == EXIT_OK) {
        struct str folder = doc_text(reply.doc, "status.phalanx.checkpointDir");
        buf_add_str(out, folder);
        if (folder.len == 0) {
            say("%s/" STR_FORMAT ": no step was committed in a directory", kind->singular, STR_ARG(name));
            rc = EXIT_NOT_FOUND;
        }
        client_reply_done(&reply);
    }
    client_close(&client);
    return rc == EXIT_OK ? enter_group(out, group) : rc;
}
