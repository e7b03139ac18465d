/* up.h - the parts of `phalanx up`: runs a controller, an agent for each machine and, with an option, an
 * emulator of each machine's chips, until a signal. Private to cmd_up.c and the files below.
 *
 *   cmd_up.c        options, and the whole from beginning to end
 *   up_folders.c    folders, credentials, and the files that tell others where the cluster is
 *   up_start.c      the command lines of children, and their control groups
 *   up_watch.c      the loop: restarts children that end, and stops the cluster
 *
 * Functions that return false or a status have printed the reason. One thread.
 */
#ifndef PHX_CMD_UP_H
#define PHX_CMD_UP_H

#include <sys/types.h>
#include <uv.h>

#include "cmd/cluster_file.h"
#include "cmd/keeper.h"
#include "host/access/pki.h"

enum { PATH_BYTES = 4096, LONG_PATH_BYTES = PATH_BYTES + 512 };

/* A command line under construction. Begins as all zeros (empty), and always ends with NULL. */
struct words {
    char *items[80];
    size_t len;
};
#define ADD_WORDS(line, list) words_add((line), (list), sizeof(list) / sizeof(*(list)))

void words_add(struct words *line, const char *const *words, size_t count);
void words_free(struct words *line); /* frees the words, of a list that owns them */

struct up;
struct child {
    struct up *up;
    enum { CHILD_CONTROLLER, CHILD_AGENT, CHILD_CHIPS } role;
    const struct machine *machine; /* NULL: the controller's */
    uv_process_t process;
    uv_timer_t timer;
    bool running;
};
struct up {
    uv_loop_t loop;
    uv_signal_t signals[3];
    struct keeper keeper;
    char self_pid[16];
    uv_pipe_t ready;
    struct buf ready_text;
    const char *cluster_path, *api, *agents, *state_dir; /* state_dir NULL: DATA/machines */
    const char *probe_root, *probe_settings;             /* NULL: no probes; the defaults */
    const char *checkpoint_store;                        /* NULL: none */
    const char *hooks;                                   /* NULL: the agents' default */
    const char *api_host;                                /* NULL: loopback names and addresses alone */
    char default_cluster[PATH_BYTES + 64];               /* file with the built-in cluster */
    char data[PATH_BYTES], self[PATH_BYTES];
    char memory[64]; /* the agents' --memory-dir, which is removed with the cluster */
    char own_group[INJECT_PATH_MAX], groups[KEEPER_GROUPS_BYTES]; /* control groups; empty: none */
    char api_at[128], agents_at[128];                             /* with the ports that were taken */
    const char *log_bytes, *log_files;                            /* options of the agents */
    struct words to_agents, to_controller;                        /* options passed on; owned */
    int64_t revive_ns;
    enum { UP_FOUND, UP_SECURE, UP_INSECURE } access_mode; /* UP_FOUND: commands find the credentials */
    bool quiet, stopping, up;
    bool emulates_chips;
    bool task_user, root_tasks;  /* the options of these names were given */
    bool bridges;                /* agents can give tasks of other users access below a closed folder */
    mode_t way;                  /* mode of the folders on the way to those that tasks use */
    char token[PKI_TOKEN_TEXT];  /* of this run, with UP_FOUND */
    char access[PATH_BYTES + 8]; /* the folder of credentials; see folder.h */
    int status;
    struct cluster cluster;
    struct child controller;
    struct child *machines; /* their agents */
    struct child *chips;    /* of each machine */
    size_t running;
};

/* Prints a line unless --quiet was given. */
void up_say(const struct up *up, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- up_folders.c --------------------------------------------------------------------------------------- */

/* Decides the mode of the cluster's folders on the way to those that tasks of other users need. */
void up_choose_way(struct up *up);
/* Makes the folders below `data`, and starts the keeper, which keeper_end() ends. */
bool up_make_folders(struct up *up, const char *data);
/* Makes credentials for the controller, the agents and the user; valid ones stay. */
bool up_make_credentials(struct up *up);
/* Writes a file into the data folder that only this user may read. */
void up_write_text(const struct up *up, const char *name, const char *text);
/* Publishes the address of the API: on standard error, in kubeconfig files and, last, in the file "ready". */
void up_announce(struct up *up);
void up_remove_ready(const struct up *up);

/* --- up_start.c ----------------------------------------------------------------------------------------- */

void up_make_groups(struct up *up);
/* Starts the child's program; up_child_ended() is called when it ends. A failure to start stops the
 * cluster. */
void up_start(struct child *child);

/* --- up_watch.c ----------------------------------------------------------------------------------------- */

/* Runs the cluster until a signal or a fatal failure; returns the exit status. */
int up_run(struct up *up);
/* Ends all children, the controller last. A second call changes nothing. */
void up_stop(struct up *up, int status);
void up_child_ended(uv_process_t *process, int64_t status, int signal_number);
/* Reads the ports from a pipe to the controller. Takes the descriptor. */
void up_read_ready(struct up *up, int fd);

#endif
