/* state.h - a state that every world has cut in its own way, for tests of who restores what: rows of one
 * matrix, columns of another, and numbers that every rank has. */
#ifndef PHX_TESTS_JOB_STATE_H
#define PHX_TESTS_JOB_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "phalanx/phalanx.h"

enum { ROWS = 11, COLUMNS = 5, CONTROL = 3 };

struct state {
    double *rows, *columns;
    int64_t control[CONTROL];
    struct phx_region regions[3];
};

static inline uint64_t share(uint64_t len, uint32_t rank, uint32_t world)
{
    return len / world + (rank < len % world);
}

static inline uint64_t begin_of(uint64_t len, uint32_t rank, uint32_t world)
{
    uint64_t begin = 0;
    for (uint32_t i = 0; i < rank; i++)
        begin += share(len, i, world);
    return begin;
}

static inline double element(uint64_t row, uint64_t column, uint64_t step)
{
    return (double)(row * 1000 + column * 10 + step * 100000);
}

static inline void make_state(struct state *state, uint32_t rank, uint32_t world)
{
    uint64_t rows = share(ROWS, rank, world), columns = share(COLUMNS, rank, world);
    *state = (struct state){
        .rows = calloc(rows * COLUMNS + 1, sizeof(double)),
        .columns = calloc(ROWS * columns + 1, sizeof(double)),
        .regions =
            {
                {.name = "rows", .dtype = PHX_F64, .dims = 2, .shape = {rows, COLUMNS}, .shard_count = world},
                {.name = "columns",
                 .dtype = PHX_F64,
                 .dims = 2,
                 .shape = {ROWS, columns},
                 .shard_count = world},
                {.name = "control", .dtype = PHX_I64, .dims = 1, .shape = {CONTROL}},
            },
    };
    state->regions[0].data = state->rows;
    state->regions[1].data = state->columns;
    state->regions[2].data = state->control;
    state->regions[1].shard_axis = 1;
    state->regions[0].shard_index = state->regions[1].shard_index = rank;
}

/* Writes the state of a step, or, with `compare`, says whether it is that. */
static inline bool walk_state(struct state *state, uint32_t rank, uint32_t world, uint64_t step, bool compare)
{
    uint64_t rows = share(ROWS, rank, world), columns = share(COLUMNS, rank, world);
    uint64_t first_row = begin_of(ROWS, rank, world), first_column = begin_of(COLUMNS, rank, world);
    bool same = true;
    for (uint64_t r = 0; r < ROWS; r++)
        for (uint64_t c = 0; c < COLUMNS; c++) {
            double value = element(r, c, step);
            double *in_rows =
                r < first_row || r >= first_row + rows ? NULL : &state->rows[(r - first_row) * COLUMNS + c];
            double *in_columns = c < first_column || c >= first_column + columns
                                     ? NULL
                                     : &state->columns[r * columns + c - first_column];
            same = same && (in_rows == NULL || *in_rows == value) &&
                   (in_columns == NULL || *in_columns == -value);
            if (!compare && in_rows != NULL)
                *in_rows = value;
            if (!compare && in_columns != NULL)
                *in_columns = -value;
        }
    for (int i = 0; i < CONTROL; i++) {
        same = same && state->control[i] == (int64_t)step + i;
        if (!compare)
            state->control[i] = (int64_t)step + i;
    }
    return same;
}

static inline void free_state(struct state *state)
{
    free(state->rows);
    free(state->columns);
}

#endif
