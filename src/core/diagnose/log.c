/* log.c - watchdog lines of PyTorch's process groups. Known forms (the first two belong to one event):
 *   [rank5]:[E...] [PG ID 2 PG GUID 3(TP) Rank 1] Watchdog caught collective operation timeout:
 *       WorkNCCL(SeqNum=10, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for ...
 *   [rank5]:[E...] [PG ID 2 PG GUID 3(TP) Rank 1] failure detected by watchdog at work sequence id: 10
 *       PG status: last enqueued work: 12, last completed work: 9
 *   [Rank 118] Watchdog caught collective operation timeout: WorkNCCL(...)
 * If the line names the group, "Rank" is the rank in the group; "[rankN]" at the beginning is the rank of the
 * job.
 */
#include <stdlib.h>

#include "base/check.h"
#include "core/diagnose/flight.h"

/* The origin of a line, kept from line to line, because the second line of an event may not name it. */
struct speaker {
    uint32_t rank; /* RANK_NONE: not known */
    struct group *group;
};

/* Finds the text after the first `mark`. Returns false if the line has no such mark. */
static bool after(struct str line, const char *mark, struct str *ret_rest)
{
    size_t len = strlen(mark);
    const char *at = line.len ? memmem(line.data, line.len, mark, len) : NULL;
    if (!at)
        return false;
    *ret_rest = (struct str){at + len, line.len - (size_t)(at - line.data) - len};
    return true;
}

static bool number_after(struct str line, const char *mark, int64_t *ret_number)
{
    struct str rest;
    size_t len = 0;
    if (!after(line, mark, &rest))
        return false;
    rest = str_trim(rest);
    if (rest.len && rest.data[0] == '-')
        len = 1;
    while (len < rest.len && rest.data[len] >= '0' && rest.data[len] <= '9')
        len++;
    CHECK(len <= rest.len);
    return str_to_i64((struct str){rest.data, len}, INT64_MIN + 1, INT64_MAX, ret_number);
}

/* Finds the group of this name that has the rank as a member, or else any group of this name. Makes one if
 * there is none. */
static struct group *group_of(struct flight *flight, struct str name, uint32_t rank)
{
    struct group *found = NULL;
    for (struct group *group = flight_group_named(flight, name); group; group = group->next)
        if (rank != RANK_NONE && flight_seat(flight, group, rank))
            return group;
        else if (!found)
            found = group;
    if (found)
        return found;
    /* Group "0" is a job's first group, and has all its ranks. */
    struct buf BUF_CLEANUP all = {0};
    for (uint32_t i = 0; str_is(name, "0") && i < flight->expected; i++)
        buf_printf(&all, "%u ", i);
    return flight_group(flight, name, STR(""), buf_str(&all), &found, NULL) < 0 ? NULL : found;
}

static uint32_t checked(int64_t rank)
{
    return rank >= 0 && rank < FLIGHT_RANKS_MAX ? (uint32_t)rank : RANK_NONE;
}

static void find_speaker(struct flight *flight, struct str line, struct speaker *speaker)
{
    int64_t global = -1, local = -1;
    struct str rest, name;
    bool named = number_after(line, "[rank", &global), group_named = after(line, "PG GUID ", &rest);
    if (!group_named) {
        if (named || number_after(line, "[Rank ", &global)) {
            /* A line without a group name belongs to the first group that was made, which has all
             * ranks. */
            speaker->rank = checked(global);
            speaker->group = group_of(flight, STR("0"), speaker->rank);
        }
        return;
    }
    name.data = rest.data;
    for (name.len = 0; name.len < rest.len && rest.data[name.len] != '(' && rest.data[name.len] != ' ';)
        name.len++;
    CHECK(name.len <= rest.len);
    speaker->rank = checked(global);
    speaker->group = group_of(flight, name, speaker->rank);
    if (!named && number_after(rest, " Rank ", &local) && local >= 0 && speaker->group)
        speaker->rank = !speaker->group->members                        ? checked(local)
                        : local < (int64_t)speaker->group->member_count ? speaker->group->members[local]
                                                                        : RANK_NONE;
}

static struct op *open_op(struct rank_record *record, const struct group *group)
{
    for (size_t i = 0; i < record->ops.len; i++)
        if (record->ops.items[i].group == group)
            return &record->ops.items[i];
    return NULL;
}

/* Translates "ALLREDUCE" to the name that dump entries use, where that is known. */
static struct str plain_name(struct str type)
{
    static const struct {
        const char *type, *name;
    } names[] = {
        {"ALLREDUCE", "all_reduce"},
        {"BROADCAST", "broadcast"},
        {"_ALLGATHER_BASE", "_all_gather_base"},
        {"ALLGATHER", "all_gather"},
        {"_REDUCE_SCATTER_BASE", "_reduce_scatter_base"},
        {"REDUCE_SCATTER", "reduce_scatter"},
        {"ALLTOALL", "all_to_all"},
        {"ALLTOALL_BASE", "all_to_all"},
        {"REDUCE", "reduce"},
        {"BARRIER", "barrier"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_is(type, names[i].type))
            return str_from(names[i].name);
    return type;
}

/* Takes an operation that timed out, and is therefore unfinished. Of several in one group, only the oldest is
 * kept. */
static bool take_timeout(struct flight *flight, struct str line, const struct speaker *speaker,
                         struct seat *seat)
{
    struct rank_record *record = flight_rank(flight, speaker->rank);
    CHECK(seat->rank == speaker->rank && seat->lane == &speaker->group->lane);
    struct str rest, type = STR("?"), tail;
    int64_t seq;
    if (!number_after(line, "SeqNum=", &seq) || number_checked(seq) == NUMBER_NONE)
        return false;
    if (after(line, "OpType=", &rest))
        type = str_cut(rest, ',', &type, &tail) ? type : rest;
    struct op *old = open_op(record, speaker->group);
    struct op op = {.seq = seq, .record_id = seq, .group = speaker->group, .seat = seat};
    op.source = op.target = RANK_NONE;
    op.name = flight_term(flight, plain_name(type), 0);
    if (seq > speaker->group->seq_max)
        speaker->group->seq_max = seq;
    if (!old)
        vec_push(&record->ops, op);
    else if (seq < old->seq)
        *old = op;
    if (seq > seat->enqueued)
        seat->enqueued = seq;
    return true;
}

static bool take_line(struct flight *flight, struct str line, struct speaker *speaker)
{
    int64_t number;
    struct str rest;
    bool timed_out = after(line, "Watchdog caught collective operation timeout", &rest);
    bool status = after(line, "last enqueued work:", &rest), said = false;
    if (!timed_out && !status)
        return false;
    find_speaker(flight, line, speaker);
    if (speaker->rank == RANK_NONE || !speaker->group)
        return false;
    struct rank_record *record = flight_rank(flight, speaker->rank);
    struct seat *seat = flight_seat(flight, speaker->group, speaker->rank);
    if (!seat || record->dumped)
        return false;
    if (timed_out)
        said = take_timeout(flight, line, speaker, seat);
    if (status && number_after(line, "last enqueued work:", &number)) {
        seat->status_enqueued = number < 0 ? 0 : number_checked(number);
        said = true;
    }
    if (status && number_after(line, "last completed work:", &number)) {
        seat->status_completed = number < 0 ? 0 : number_checked(number);
        said = true;
    }
    if (said)
        record->logged = record->mentioned = true;
    return said;
}

size_t flight_add_log(struct flight *flight, struct str text)
{
    struct speaker speaker = {.rank = RANK_NONE};
    struct str line;
    size_t taken = 0;
    while (str_cut(text, '\n', &line, &text))
        taken += take_line(flight, line, &speaker);
    return taken + take_line(flight, text, &speaker);
}
