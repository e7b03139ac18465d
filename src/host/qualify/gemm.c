#include "host/qualify/internal.h"

#include "base/arena.h"

static int32_t small(uint64_t seed)
{
    return (int32_t)(test_noise(seed) % 7) - 3;
}

void gemm_init(struct gemm_answer *answer, uint32_t size, uint64_t seed)
{
    *answer = (struct gemm_answer){.size = size};
    for (int i = 0; i < 2; i++) {
        answer->left[i] = mem_alloc(2 * size * sizeof(int32_t));
        answer->right[i] = mem_alloc(2 * size * sizeof(int32_t));
        for (uint32_t k = 0; k < 2 * size; k++) {
            answer->left[i][k] = small(seed + 4 * k + (uint64_t)i);
            answer->right[i][k] = small(~seed + 4 * k + (uint64_t)i);
        }
    }
    /* left = sum of l_i x_i^T, right = sum of y_j r_j^T: inner[i][j] = x_i . y_j */
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            for (uint32_t k = 0; k < size; k++)
                answer->inner[i][j] += (int64_t)answer->left[i][size + k] * answer->right[j][size + k];
}

void gemm_done(struct gemm_answer *answer)
{
    for (int i = 0; i < 2; i++) {
        mem_free(answer->left[i]);
        mem_free(answer->right[i]);
    }
}

double gemm_left(const struct gemm_answer *answer, uint32_t row, uint32_t column)
{
    int32_t sum = 0;
    for (int i = 0; i < 2; i++)
        sum += answer->left[i][row] * answer->left[i][answer->size + column];
    return sum;
}

double gemm_right(const struct gemm_answer *answer, uint32_t row, uint32_t column)
{
    int32_t sum = 0;
    for (int j = 0; j < 2; j++)
        sum += answer->right[j][answer->size + row] * answer->right[j][column];
    return sum;
}

double gemm_product(const struct gemm_answer *answer, uint32_t row, uint32_t column)
{
    int64_t sum = 0;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            sum += answer->left[i][row] * answer->inner[i][j] * answer->right[j][column];
    return (double)sum;
}
