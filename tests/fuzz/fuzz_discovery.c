/* fuzz_discovery.c - words of ranks on their chips (job/fabric/gather.h), true and untrue, and a
 * bring-up of that. Two ranks hear the same words: rank 0, and one that the input names.
 *
 *     u8 shape, u8 rank, u8 first cube, u8 origin (bits 0-1 x, 2-3 y, 4-5 z: of a part of a cube)
 *     u8 terms: bit 0: keeps routes; 1: rank 0 has a cache; 2: the digest of its tables is told wrong
 *     changes of the true words, enum change each
 *
 * Properties: no crash; a rank puts its own word, under keys of this generation; true words bring the slice
 * up; after a success each chip of the machine is loaded once, with its number in the slice, and the links
 * that the words show are those of the shape; session, memory and avoided switches are what all words say;
 * an error has a message; both ranks come to the same end, with the same tables. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include "base/check.h"
#include "job/fabric/gather.c" /* libphalanx_fabric is part of no layer's library */
#include "job/fabric/bring_up.c"
#define exchange exchange_digests
#include "job/fabric/tables.c"
#undef exchange

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RANKS_MAX = 32, CHIPS_MAX = RANKS_MAX * PHX_SLICE_CHIPS };
enum { SMALL_SHAPES = 6, LARGE_FROM = 240 }; /* tables of large slices take long to prove */
enum change {
    CHANGE_BYTE,    /* u8 rank, u16 place, u8 value */
    CHANGE_DARK,    /* u16 chip, u8 port: no light at both ends */
    CHANGE_LABEL,   /* u16 chip, u16 label: the chip and its neighbours say so */
    CHANGE_TABLES,  /* u8 rank, u8 tables, u8 switch to be avoided */
    CHANGE_LENGTH,  /* u8 rank, u16 length: of the value whose key names the rank */
    CHANGE_SESSION, /* u8 rank, u32 session, u32 memory of its first chip */
    CHANGES
};
static const struct slice_shape shapes[] = {
    {{2, 2, 1}, false}, {{2, 2, 2}, false}, {{4, 2, 1}, false}, {{2, 4, 2}, false}, {{2, 2, 4}, false},
    {{4, 4, 1}, false}, {{4, 4, 2}, false}, {{4, 4, 4}, false}, {{4, 4, 8}, false}, {{4, 4, 8}, true},
};

struct input {
    const uint8_t *data;
    size_t left;
};

static uint32_t take(struct input *input, uint32_t count)
{
    uint32_t value = 0;
    for (; count > 0 && input->left > 0; count--, input->left--)
        value = value << 8 | *input->data++;
    return value;
}

/* The slice, what its ranks say, and what the rank that is run has done so far. */
static struct {
    struct slice_shape shape;
    struct torus torus;
    uint32_t world;
    uint32_t labels[CHIPS_MAX];
    struct fabric_word words[RANKS_MAX];
    uint8_t bytes[RANKS_MAX * WORD_BYTES];
    uint32_t cut_rank; /* whose value has another length; RANKS_MAX: none */
    size_t cut_len;
    uint32_t garbled; /* whose bytes are no word, if some are none */
    bool changed, digest_lies, has_digest;
    uint8_t digest[DIGEST_BYTES];
    uint32_t rank;
    struct phx_fabric *fabric;
    uint32_t loads[PHX_SLICE_CHIPS];
    bool put_word, started;
    uint64_t wrong; /* as it was told */
} bed;

/* --- the library beneath ---------------------------------------------------------------------------- */

int fabric_fail(struct phx_error *error, int code, const char *format, ...)
{
    va_list args;
    *error = (struct phx_error){.code = code, .rank = -1};
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    return code;
}

void fabric_key(const struct phx_fabric *fabric, const char *name, uint32_t generation, int64_t rank,
                char key[FABRIC_KEY_MAX])
{
    fabric_gather_key(fabric->opened, name, generation, rank, key);
}

/* The words that a key stands for; *ret_bytes NULL: those are the digest of rank 0's tables. */
static uint32_t rank_of_key(const char *key, uint8_t **ret_bytes, size_t *ret_len)
{
    char name[8] = "";
    uint32_t rank = 0, most;
    if (strcmp(key, "fabric/0/tables/1") == 0) {
        *ret_bytes = NULL;
        *ret_len = DIGEST_BYTES;
        return RANKS_MAX + 1;
    }
    CHECK(sscanf(key, "fabric/0/%7[a-z]/1/%u", name, &rank) == 2 && rank < bed.world);
    most = strcmp(name, "word") == 0 ? 1 : strcmp(name, "group") == 0 ? (uint32_t)GROUP_RANKS : RANKS_MAX;
    CHECK(most < RANKS_MAX || (strcmp(name, "all") == 0 && rank == 0));
    CHECK(most != GROUP_RANKS || (rank > 0 && rank % GROUP_RANKS == 0));
    *ret_bytes = bed.bytes + rank * WORD_BYTES;
    *ret_len = (bed.world - rank < most ? bed.world - rank : most) * WORD_BYTES;
    return rank;
}

int phx_kv_get(phx_context *ctx, const char *key, void *buf, size_t cap, size_t *ret_len, int64_t timeout_ms,
               struct phx_error *error)
{
    uint8_t *bytes;
    size_t len, there;
    uint32_t rank = rank_of_key(key, &bytes, &len);
    CHECK(cap == len && timeout_ms == -1);
    CHECK(bytes || (bed.rank > 0 && (bed.has_digest || bed.cut_rank < RANKS_MAX)));
    if (!bytes && !bed.has_digest)
        return fabric_fail(error, PHX_ERROR_TIMEOUT, "rank 0 has failed");
    there = len;
    if (rank == bed.cut_rank)
        len = bed.cut_len;
    *ret_len = len;
    if (len > cap)
        return fabric_fail(error, PHX_ERROR_SPACE, "%s has %zu bytes", key, len);
    memcpy(buf, bytes ? bytes : bed.digest, len < there ? len : there);
    if (!bytes && bed.digest_lies)
        *(uint8_t *)buf ^= 1;
    return 0;
}

int phx_kv_put(phx_context *ctx, const char *key, const void *value, size_t len, struct phx_error *error)
{
    uint8_t *bytes;
    size_t whole;
    uint32_t rank = rank_of_key(key, &bytes, &whole);
    CHECK(len == whole);
    if (bytes) {
        CHECK(rank == bed.rank && memcmp(bytes, value, len) == 0);
        bed.put_word = true;
    } else {
        CHECK(bed.rank == 0);
        memcpy(bed.digest, value, len);
        bed.has_digest = true;
    }
    return 0;
}

int phx_slice_get(phx_context *ctx, struct phx_slice *ret_slice)
{
    *ret_slice =
        (struct phx_slice){.tables = bed.words[bed.rank].tables, .without = bed.words[bed.rank].without};
    return 1;
}

void phx_slice_loaded(phx_context *ctx, uint64_t tables, uint64_t without)
{
    CHECK(tables == bed.fabric->slice.tables && without == bed.fabric->without);
}

void phx_slice_wrong(phx_context *ctx, uint64_t switches)
{
    bed.wrong = switches;
}

int phx_slice_wait(phx_context *ctx, uint64_t seen, int64_t timeout_ms, struct phx_slice *ret_slice,
                   struct phx_error *error)
{
    CHECK(seen == bed.fabric->slice.tables);
    return PHX_ERROR_TIMEOUT;
}

int phx_barrier(phx_context *ctx, int64_t timeout_ms, struct phx_error *error)
{
    return 0;
}

void fabric_forget_arrivals(struct phx_fabric *fabric)
{
}
int fabric_await_start(struct phx_fabric *fabric, struct phx_error *error)
{
    CHECK(bed.started == (bed.rank == 0));
    return 0;
}
int fabric_ask_again(struct phx_fabric *fabric, struct phx_error *error)
{
    return FABRIC_AGAIN;
}

/* Folders of solved tables are empty, and take none: fuzz_fabric feeds such tables. */
int route_cache_read(const char *folder, const struct torus *torus, struct buf *ret_bytes,
                     struct error *error)
{
    return error_set(error, ERROR_NOT_FOUND, "%s is empty", folder);
}
struct route_keeper *route_cache_begin(const char *folder, const struct torus *torus,
                                       const struct route *route)
{
    return NULL;
}
const struct error *route_cache_failure(const struct route_keeper *keeper)
{
    return NULL;
}
void route_cache_end(struct route_keeper *keeper, bool hurry)
{
    CHECK(!keeper);
}

/* --- the chips of the rank's machine ------------------------------------------------------------------ */

static uint16_t number_of(uint32_t rank, uint32_t index)
{
    uint32_t at[AXES];
    chip_at(bed.fabric, rank, index, at);
    return torus_chip(&bed.torus, at[0], at[1], at[2]);
}

static int look(struct phx_chips *chips, uint32_t chip, struct phx_chip_about *ret_about,
                struct phx_error *error)
{
    *ret_about = bed.words[bed.rank].chips[chip];
    return 0;
}

static int load(struct phx_chips *chips, uint32_t chip, const struct phx_chip_load *load_of,
                struct phx_error *error)
{
    CHECK(chip < PHX_SLICE_CHIPS && ++bed.loads[chip] == 1 && load_of->chips == bed.torus.chips);
    CHECK(load_of->number == number_of(bed.rank, chip) && load_of->session == bed.fabric->session);
    CHECK(load_of->session != 0 && load_of->wait_ns >= 0);
    CHECK((load_of->parent == FABRIC_NO_PORT) == (load_of->number == 0));
    for (uint32_t to = 0; to < load_of->chips; to++)
        CHECK(to == load_of->number || (load_of->inject[to] & 7) < CHIP_PORTS);
    return 0;
}

static int start(struct phx_chips *chips, uint32_t chip, uint32_t session, struct phx_error *error)
{
    CHECK(bed.rank == 0 && chip == 0 && session == bed.fabric->session);
    bed.started = true;
    return 0;
}

static int unload(struct phx_chips *chips, uint32_t chip, struct phx_error *error)
{
    return 0;
}

static int next(struct phx_chips *chips, struct phx_chip_event *ret_event, struct phx_error *error)
{
    return 0;
}

static const struct phx_chips_driver driver = {
    .abi = PHX_CHIPS_DRIVER_ABI, .look = look, .load = load, .start = start, .unload = unload, .next = next};

/* --- the words -------------------------------------------------------------------------------------- */

static struct phx_chip_about *chip_of(uint16_t number)
{
    uint32_t index, rank = owner_of(bed.fabric, number, &index);
    return &bed.words[rank].chips[index];
}

static void tell_links(uint16_t number)
{
    struct phx_chip_about *chip = chip_of(number);
    chip->label = bed.labels[number];
    for (uint32_t port = 0; port < CHIP_PORTS; port++) {
        uint16_t to = bed.torus.next[number * CHIP_PORTS + port];
        if (to != TORUS_NONE)
            chip->ports[port] = (struct phx_chip_port){1, (uint8_t)(port ^ 1), bed.labels[to], 400 + port};
    }
}

static void tell_truth(struct input *input)
{
    uint32_t cube = take(input, 1), origin = take(input, 1), at[AXES], inside;
    for (uint32_t number = 0; number < bed.torus.chips; number++) {
        for (uint32_t axis = 0; axis < AXES; axis++) {
            uint32_t room = bed.shape.extent[axis] < CUBE_SIDE ? CUBE_SIDE - bed.shape.extent[axis] : 0;
            at[axis] = bed.torus.at[axis][number] + (origin >> 2 * axis & 3) % (room + 1);
        }
        uint32_t place = slice_chip_place(&bed.shape, at, &inside);
        bed.labels[number] = (cube + 7 * place) % POD_CUBES_MAX * CUBE_CHIPS + inside;
    }
    for (uint32_t number = 0; number < bed.torus.chips; number++) {
        tell_links((uint16_t)number);
        chip_of((uint16_t)number)->memory_bytes = 1 << 16;
    }
}

static void make_dark(uint16_t number, uint32_t port)
{
    uint16_t to = bed.torus.next[number * CHIP_PORTS + port];
    chip_of(number)->ports[port] = (struct phx_chip_port){0};
    if (to != TORUS_NONE)
        chip_of(to)->ports[port ^ 1] = (struct phx_chip_port){0};
}

static void change_label(uint16_t number, uint32_t label)
{
    bed.labels[number] = label;
    tell_links(number);
    for (uint32_t port = 0; port < CHIP_PORTS; port++)
        if (bed.torus.next[number * CHIP_PORTS + port] != TORUS_NONE)
            tell_links(bed.torus.next[number * CHIP_PORTS + port]);
}

static void write_words(void)
{
    for (uint32_t rank = 0; rank < bed.world; rank++)
        write_word(&bed.words[rank], bed.bytes + rank * WORD_BYTES);
}

/* False, with the rank: its bytes are no word. A word has one form. */
static bool read_words(void)
{
    uint8_t again[WORD_BYTES];
    for (bed.garbled = 0; bed.garbled < bed.world; bed.garbled++) {
        const uint8_t *bytes = bed.bytes + bed.garbled * WORD_BYTES;
        if (!read_word(bytes, WORD_BYTES, &bed.words[bed.garbled]))
            return false;
        write_word(&bed.words[bed.garbled], again);
        CHECK(memcmp(again, bytes, WORD_BYTES) == 0);
    }
    return true;
}

/* Returns false after a change that leaves no word. */
static bool change(struct input *input)
{
    uint32_t kind = take(input, 1) % CHANGES;
    uint16_t number = kind == CHANGE_DARK || kind == CHANGE_LABEL ? (uint16_t)(take(input, 2)) : 0;
    uint32_t rank = kind == CHANGE_DARK || kind == CHANGE_LABEL ? 0 : take(input, 1) % bed.world;
    struct fabric_word *word = &bed.words[rank];
    number = (uint16_t)(number % bed.torus.chips);
    bed.changed = true;
    if (kind == CHANGE_BYTE) {
        uint32_t place = take(input, 2) % WORD_BYTES;
        bed.bytes[rank * WORD_BYTES + place] = (uint8_t)take(input, 1);
        return read_words();
    }
    if (kind == CHANGE_DARK) {
        make_dark(number, take(input, 1) % CHIP_PORTS);
    } else if (kind == CHANGE_LABEL) {
        change_label(number, take(input, 2));
    } else if (kind == CHANGE_TABLES) {
        word->tables = take(input, 1);
        word->without |= UINT64_C(1) << take(input, 1) % 64;
    } else if (kind == CHANGE_LENGTH) {
        bed.cut_rank = rank;
        bed.cut_len = take(input, 2);
    } else {
        word->chips[0].session = take(input, 4);
        word->chips[0].memory_bytes = take(input, 4);
    }
    write_words();
    return true;
}

/* --- what has to hold ------------------------------------------------------------------------------- */

static bool is_avoided(const struct phx_fabric *fabric, uint32_t label, uint32_t port)
{
    struct link_end end;
    return cube_chip_optical((uint16_t)(label / CUBE_CHIPS), label % CUBE_CHIPS, port, &end) &&
           (fabric->without >> (FACE_LINKS * end.axis + end.index) & 1);
}

/* The links with light that no word says to avoid are those of the shape, and no two chips are the same. */
static void check_wires(const struct phx_fabric *fabric)
{
    static bool taken[POD_CUBES_MAX * CUBE_CHIPS];
    memset(taken, 0, sizeof taken);
    for (uint32_t number = 0; number < bed.torus.chips; number++) {
        const struct phx_chip_about *chip = chip_of((uint16_t)number);
        CHECK(chip->label < POD_CUBES_MAX * CUBE_CHIPS && !taken[chip->label]);
        taken[chip->label] = true;
        for (uint32_t port = 0; port < CHIP_PORTS; port++) {
            uint16_t to = bed.torus.next[number * CHIP_PORTS + port];
            if (!chip->ports[port].light || to == TORUS_NONE || is_avoided(fabric, chip->label, port))
                continue;
            CHECK(chip->ports[port].chip == chip_of(to)->label && chip->ports[port].port == (port ^ 1));
            CHECK(chip->ports[port].rtt_ns > 0 && chip->ports[port].rtt_ns <= FABRIC_RTT_NS_MAX);
        }
    }
}

static void check_success(const struct phx_fabric *fabric)
{
    uint64_t newest = 0;
    uint32_t session = 0, memory_bytes = UINT32_MAX;
    bool is_newest = false;
    for (uint32_t rank = 0; rank < bed.world; rank++)
        newest = bed.words[rank].tables > newest ? bed.words[rank].tables : newest;
    for (uint32_t rank = 0; rank < bed.world; rank++) {
        const struct fabric_word *word = &bed.words[rank];
        is_newest |= word->tables == newest && word->without == fabric->without;
        for (uint32_t index = 0; index < PHX_SLICE_CHIPS; index++) {
            const struct phx_chip_about *chip = &word->chips[index];
            session = chip->session > session ? chip->session : session;
            memory_bytes = chip->memory_bytes < memory_bytes ? chip->memory_bytes : memory_bytes;
        }
    }
    CHECK(fabric->session == (session == UINT32_MAX ? 1 : session + 1));
    CHECK(fabric->memory_bytes == memory_bytes);
    CHECK((bed.wrong & ~fabric->without) == 0);
    CHECK(is_newest && fabric->slice.tables == newest);
    for (uint32_t index = 0; index < PHX_SLICE_CHIPS; index++) {
        const struct phx_chip_about *chip = &bed.words[bed.rank].chips[index];
        CHECK(bed.loads[index] == 1);
        for (uint32_t port = 0; port < CHIP_PORTS; port++)
            CHECK(!(fabric->live[index] >> port & 1) ||
                  (chip->ports[port].light && !is_avoided(fabric, chip->label, port)));
    }
    CHECK(fabric->summary.proof.pairs == (uint64_t)bed.torus.chips * (bed.torus.chips - 1));
    CHECK(!fabric->keeps_routes || fabric->summary.dark == 0);
    check_wires(fabric);
}

/* Runs the part of a rank. Returns its end; *ret_error tells why. */
static int bring_up(uint32_t rank, uint32_t terms, struct phx_error *ret_error)
{
    static char folder[] = "cache";
    struct phx_fabric *fabric = bed.fabric;
    bed.rank = rank;
    bed.put_word = bed.started = false;
    memset(bed.loads, 0, sizeof bed.loads);
    *fabric = (struct phx_fabric){.driver = &driver,
                                  .keeps_routes = terms & 1,
                                  .rank = rank,
                                  .world = bed.world,
                                  .shape = bed.shape,
                                  .torus = bed.torus,
                                  .words = fabric->words,
                                  .done = bed.words[rank].done};
    *ret_error = (struct phx_error){0};
    fabric->cache.folder = bed.words[rank].cache & FABRIC_CACHES ? folder : NULL;
    fabric->cache.distrusted = bed.words[rank].cache & FABRIC_DISTRUSTS;
    int status = fabric_bring_up(fabric, ret_error);
    CHECK(status <= FABRIC_AGAIN && fabric->generation == 1);
    if (status == 0)
        check_success(fabric);
    if (status < 0)
        CHECK(ret_error->code == status && ret_error->message[0] &&
              strnlen(ret_error->message, sizeof ret_error->message) < sizeof ret_error->message);
    return status;
}

/* Every rank that hears bytes which are no word says so. */
static void hear_garbled(uint32_t rank, uint32_t terms)
{
    struct phx_error error;
    if (rank == bed.garbled || bed.words[rank].cache > (FABRIC_CACHES | FABRIC_DISTRUSTS))
        return;
    CHECK(bring_up(rank, terms, &error) < 0);
    CHECK(bed.cut_rank < RANKS_MAX || strstr(error.message, "in another version of the library"));
}

static void run_ranks(uint32_t other, uint32_t terms)
{
    struct phx_error errors[2];
    for (uint32_t i = 0; i < 2; i++) /* of its own cache a rank says no more than this */
        bed.words[i == 0 ? 0 : other].cache &= FABRIC_CACHES | FABRIC_DISTRUSTS;
    write_words();
    int first = bring_up(0, terms, &errors[0]);
    CHECK(bed.changed || first == 0);
    if (other == 0)
        return;
    int second = bring_up(other, terms, &errors[1]);
    CHECK(bed.put_word || other % GROUP_RANKS == 0);
    if (bed.cut_rank < RANKS_MAX)
        return;
    if (bed.digest_lies && bed.fabric->cache.used)
        CHECK(second != 0);
    else
        CHECK(first == second && (first == 0 || strcmp(errors[0].message, errors[1].message) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct phx_fabric fabric;
    struct input input = {data, size < 1024 ? size : 1024};
    memset(&bed, 0, sizeof bed);
    uint32_t shape = take(&input, 1);
    bed.shape = shapes[shape < LARGE_FROM ? shape % SMALL_SHAPES : shape % (sizeof shapes / sizeof *shapes)];
    torus_init(&bed.torus, &bed.shape);
    bed.world = bed.torus.chips / PHX_SLICE_CHIPS;
    bed.cut_rank = RANKS_MAX;
    fabric = (struct phx_fabric){.shape = bed.shape, .torus = bed.torus, .world = bed.world};
    fabric.words = mem_alloc(bed.world * sizeof *fabric.words);
    bed.fabric = &fabric;
    uint32_t other = take(&input, 1) % bed.world;
    tell_truth(&input);
    uint32_t terms = take(&input, 1);
    bed.digest_lies = terms >> 2 & 1;
    bed.words[0].cache = terms & 2 ? FABRIC_CACHES : 0;
    write_words();
    bool are_words = true;
    while (input.left > 0 && are_words)
        are_words = change(&input);
    if (are_words) {
        run_ranks(other, terms);
    } else {
        hear_garbled(0, terms);
        hear_garbled(other, terms);
    }
    mem_free(fabric.words);
    torus_done(&bed.torus);
    return 0;
}
