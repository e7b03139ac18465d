/* model_asked.h - the options and the output of `phalanx model` and its short form `phalanx ettr`.
 *
 * The table in model_options.c has all options: the actions that take them, their values, and their help.
 * Actions read `given` and `value`, in which durations are seconds.
 */
#ifndef PHX_CMD_MODEL_ASKED_H
#define PHX_CMD_MODEL_ASKED_H

#include "cmd/client.h"
#include "sim/model/ettr_forms.h"

enum model_action {                  /* bits */
                    MODEL_SHORT = 1, /* phalanx ettr */
                    MODEL_ETTR = 2,
                    MODEL_MTTF = 4,
                    MODEL_INTERVAL = 8,
                    MODEL_SPARES = 16,
                    MODEL_AVAILABILITY = 32,
                    MODEL_ACTIONS_ALL =
                        MODEL_ETTR | MODEL_MTTF | MODEL_INTERVAL | MODEL_SPARES | MODEL_AVAILABILITY,
};

enum model_setting {
    MODEL_MACHINES,
    MODEL_GPUS,
    MODEL_PER_MACHINE,
    MODEL_RATE,
    MODEL_JOB_MTTF,
    MODEL_EVERY, /* --interval */
    MODEL_WRITE,
    MODEL_RESTART,
    MODEL_QUEUE,
    MODEL_RUN,
    MODEL_TARGET,
    MODEL_TRIALS,
    MODEL_SEED,
    MODEL_FAILURES,
    MODEL_EXPOSURE,
    MODEL_CONFIDENCE,
    MODEL_JOBS,
    MODEL_CHECKS,
    MODEL_BEFORE,
    MODEL_AFTER,
    MODEL_ABOVE,
    MODEL_REPAIR,
    MODEL_COUNT, /* --spares */
    MODEL_COLD,
    MODEL_HOST,
    MODEL_POD,
    MODEL_SLICE,
    MODEL_SETTINGS
};

struct model_asked {
    const char *usage; /* of the command, for messages */
    enum model_action action;
    bool json;
    bool given[MODEL_SETTINGS];
    double value[MODEL_SETTINGS];
    const char *text[MODEL_SETTINGS]; /* of files: the argument */
};

void model_asked_default(struct model_asked *ret_asked);
/* Returns the rows for usage_option(), of the options that one of `actions` takes. */
const struct option *model_options(uint32_t actions);
/* Takes any option that usage_option() has read, except -h. Returns EXIT_OK, or EXIT_USAGE after a
 * message. */
int model_take_option(struct model_asked *asked, int letter, const char *value);
/* Returns false, after a message that names it, if an option was given that the action does not take. */
bool model_options_fit(const struct model_asked *asked, const char *action_name);
void model_options_help(struct buf *out, uint32_t actions);

/* --- answers, as text or as one JSON object ------------------------------------------------------------- */

enum { MODEL_COLUMNS_MAX = 10, MODEL_TEXT_COLUMNS = 100 };
struct model_column {
    const char *head, *key; /* name in text, and in JSON; key NULL: the column is not in JSON */
};
struct model_answer {
    bool json;
    struct buf out;
    struct json_writer writer;
    /* Private: the table that is open. */
    const struct model_column *columns;
    size_t column_count, at;
    struct text_table table;
};

void reply_begin(struct model_answer *answer, bool json);
int reply_end(struct model_answer *answer); /* prints the answer; returns EXIT_OK */
/* Append a line "WORDS VALUE", or a member; nothing for a value that is NaN or infinite. */
void reply_number(struct model_answer *answer, const char *key, const char *words, double value, int digits);
void reply_span(struct model_answer *answer, const char *key, const char *words, double seconds);
/* Appends a line of text; nothing in JSON. */
void reply_text(struct model_answer *answer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void reply_gap(struct model_answer *answer); /* appends an empty line of text */
/* Begins a table, or an array of objects; the cells follow row by row. */
void reply_table(struct model_answer *answer, const char *key, const struct model_column *columns,
                 size_t count);
void reply_cell(struct model_answer *answer, double value, int digits); /* NaN, infinite: "-", or absent */
void reply_cell_span(struct model_answer *answer, double seconds);
void reply_cell_text(struct model_answer *answer, const char *text);
void reply_table_end(struct model_answer *answer);

enum { SPAN_TEXT_MAX = 32 };
/* Formats a duration for people: "12 ms", "6m54s", "2.46 h", "28.80 days". */
void span_text(double seconds, char text[SPAN_TEXT_MAX]);

/* --- actions: each returns an exit status --------------------------------------------------------------- */

int model_run_short(struct model_asked *asked);
int model_run_ettr(struct model_asked *asked);
int model_run_interval(struct model_asked *asked);
int model_run_mttf(struct model_asked *asked);
int model_run_spares(struct model_asked *asked);
int model_run_availability(struct model_asked *asked);

/* Prints a mistake in the command line as a whole; returns EXIT_USAGE. */
int model_complain(const struct model_asked *asked, const char *what);
/* Returns the number of machines according to --machines or --gpus; 0 if neither was given. */
double model_machines(const struct model_asked *asked);
/* Fills the terms from the options. Returns EXIT_OK, or EXIT_USAGE after a message. The interval of `auto` is
 * 0, for the caller to decide. */
int model_terms(const struct model_asked *asked, struct ettr_terms *ret_terms);

#endif
