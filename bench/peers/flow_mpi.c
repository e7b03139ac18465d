/* The micro-benchmark of bench/flow.c in MPI: every rank loops by itself over a scalar all-reduce (the
 * largest value of all ranks) and an addition, its result the next one's argument. `flow_mpi LAUNCHES NODES
 * CALLS` runs LAUNCHES programs of NODES calls of a function that holds CALLS computations: 1 and 1 are the
 * paper's OpByOp, 128 and 1 its Chained, 1 and 128 its Fused. The clock runs from the first rank that leaves
 * the barrier to the last one that has its result. Rank 0 prints "RATE computations/s". Every rank checks its
 * value. Built with mpicc by bench/openmpi.py. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WARM_UP = 256, NODES_MAX = 4096 };

/* A compiled function: called through a pointer, as an executor calls what it has compiled. */
typedef float (*function)(float value, int calls);

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static float reduce_and_add(float value, int calls)
{
    for (int i = 0; i < calls; i++) {
        float largest;
        MPI_Allreduce(&value, &largest, 1, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
        value = largest + 1;
    }
    return value;
}

static float run_program(const function *nodes, int count, int calls, float value)
{
    for (int i = 0; i < count; i++)
        value = nodes[i](value, calls);
    return value;
}

/* From the first of all ranks that begins to the last one that ends, in seconds. */
static double time_s(const function *nodes, int launches, int count, int calls, float *value)
{
    int64_t begin_ns, end_ns, first_ns, last_ns;
    MPI_Barrier(MPI_COMM_WORLD);
    begin_ns = now_ns();
    for (int i = 0; i < launches; i++)
        *value = run_program(nodes, count, calls, *value);
    end_ns = now_ns();
    MPI_Allreduce(&begin_ns, &first_ns, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&end_ns, &last_ns, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    return (double)(last_ns - first_ns) / 1e9;
}

static int count_from(const char *text, int most)
{
    char *end;
    long count = strtol(text, &end, 10);
    return *end == '\0' && count >= 1 && count <= most ? (int)count : 0;
}

int main(int argc, char **argv)
{
    static function nodes[NODES_MAX];
    int rank, launches, count, calls;
    float value = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 4 || (launches = count_from(argv[1], 1 << 24)) == 0 ||
        (count = count_from(argv[2], NODES_MAX)) == 0 || (calls = count_from(argv[3], 1 << 24)) == 0) {
        if (rank == 0)
            fprintf(stderr, "usage: flow_mpi LAUNCHES NODES CALLS\n");
        MPI_Finalize();
        return 2;
    }
    for (int i = 0; i < count; i++)
        nodes[i] = reduce_and_add;
    reduce_and_add(0, WARM_UP); /* makes the connections between ranks */
    double seconds = time_s(nodes, launches, count, calls, &value);
    double computations = (double)launches * count * calls;
    if (value != (float)computations) {
        fprintf(stderr, "flow_mpi: rank %d has %g after %g computations\n", rank, value, computations);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (rank == 0)
        printf("%.6g computations/s\n", computations / seconds);
    MPI_Finalize();
    return 0;
}
