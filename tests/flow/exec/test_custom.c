/* Custom calls: special functions against known values and identities, topk, next_after. */
#include "programs.h"

#include <math.h>

#include "flow/exec/custom.h"

static void assert_near(double actual, double expected)
{
    if (!(fabs(actual - expected) <= 1e-13 * (1 + fabs(expected))))
        fail_msg("%.17g, expected %.17g", actual, expected);
}

static void test_known_values(void **state)
{
    const double euler = 0.57721566490153286;
    assert_near(special_digamma(1), -euler);
    assert_near(special_digamma(0.5), -euler - 2 * log(2));
    assert_true(isnan(special_digamma(-3)));
    assert_near(special_zeta(2, 1), M_PI * M_PI / 6);
    assert_near(special_zeta(4, 1), pow(M_PI, 4) / 90);
    assert_near(special_zeta(2, 0.5), M_PI * M_PI / 2);
    assert_true(isinf(special_zeta(1, 3)) && isnan(special_zeta(0.5, 1)));
    assert_near(special_polygamma(1, 1), M_PI * M_PI / 6);
    assert_near(special_polygamma(2, 1), -2 * 1.2020569031595943);
    assert_near(special_lgamma(0.5), log(M_PI) / 2);
    assert_near(special_bessel_i1e(1), 0.56515910399248503 * exp(-1));
    assert_near(special_bessel_i1e(-1), -0.56515910399248503 * exp(-1));
    assert_true(special_bessel_i1e(INFINITY) == 0 && isnan(special_bessel_i1e(NAN)));
}

/* Identities on many points: steps of digamma and zeta, the series of the Bessel function where they meet. */
static void test_identities(void **state)
{
    for (int k = 1; k < 400; k++) {
        double x = k * 0.37 - 20.05;
        assert_true(fabs(special_digamma(x + 1) - special_digamma(x) - 1 / x) < 1e-11 * (1 + fabs(1 / x)));
        double q = k * 0.11;
        for (double s = 1.25; s < 12; s += 0.75)
            assert_near(special_zeta(s, q), pow(q, -s) + special_zeta(s, q + 1));
        double p = k / 400.0;
        assert_near(erf(special_erf_inv(p)), p);
        assert_near(special_erf_inv(-p), -special_erf_inv(p));
    }
    assert_near(special_bessel_i1e(nextafter(30, 0)), special_bessel_i1e(30));
    assert_true(isinf(special_erf_inv(1)) && isnan(special_erf_inv(1.5)));
    assert_near(erfc(special_erf_inv(1 - 0x1p-40)) * 0x1p40, 1);
}

static void test_calls(void **state)
{
    static const char *const BODIES[] = {
        "%a = stablehlo.constant dense<[[1.0, 5.0, 3.0, 5.0], [0x7FC00000, -1.0, 0.0, 2.0]]> : "
        "tensor<2x4xf32>\n"
        "%0:2 = stablehlo.custom_call @mhlo.topk(%a) : (tensor<2x4xf32>) -> (tensor<2x3xf32>, "
        "tensor<2x3xi32>)\n"
        "check.expect_eq_const %0#0, dense<[[5.0, 5.0, 3.0], [0x7FC00000, 2.0, 0.0]]> : tensor<2x3xf32>\n"
        "check.expect_eq_const %0#1, dense<[[1, 3, 2], [0, 3, 2]]> : tensor<2x3xi32>",
        "%a = stablehlo.constant dense<[1.0, 0.0, -0.0, 0x7F800000, 1.0]> : tensor<5xf32>\n"
        "%b = stablehlo.constant dense<[2.0, -1.0, 0.0, 0.0, 1.0]> : tensor<5xf32>\n"
        "%0 = stablehlo.custom_call @mhlo.next_after(%a, %b) : (tensor<5xf32>, tensor<5xf32>) -> "
        "tensor<5xf32>\n"
        "%1 = stablehlo.bitcast_convert %0 : (tensor<5xf32>) -> tensor<5xui32>\n"
        "check.expect_eq_const %1, dense<[0x3F800001, 0x80000001, 0, 0x7F7FFFFF, 0x3F800000]> : "
        "tensor<5xui32>",
        "%a = stablehlo.constant dense<[0x7F800000, 0xFF800000, 1.0, 0x7FC00000]> : tensor<4xf32>\n"
        "%0 = stablehlo.custom_call @mhlo.is_pos_inf(%a) : (tensor<4xf32>) -> tensor<4xi1>\n"
        "check.expect_eq_const %0, dense<[true, false, false, false]> : tensor<4xi1>\n"
        "%1 = stablehlo.custom_call @mhlo.erf(%a) : (tensor<4xf32>) -> tensor<4xf32>\n"
        "check.expect_eq_const %1, dense<[1.0, -1.0, 0.842700779, 0x7FC00000]> : tensor<4xf32>",
    };
    BODIES_PASS(BODIES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_identities),
        cmocka_unit_test(test_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
