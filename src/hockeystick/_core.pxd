# The C names that the gate may call; csrc/hs.h is the contract.

cdef extern from "hs.h" nogil:
    ctypedef struct hs_point:
        double log_scale, estimate, lower, upper
        double aliasing, truncation, inner, rounding
        long n_nodes
    int hs_status_last()
    int hs_hyperbola_delta(int b, const double *m, const double *q, const double *k, int add, double eps,
                           double log_tol, double *work, long n_work, hs_point *out)
    int hs_hyperbola_eps(int b, const double *m, const double *q, const double *k, int add, double log_delta,
                         double log_tol, double *work, long n_work, double *eps_lower, double *eps_estimate,
                         double *eps_upper, hs_point *out)
    enum:
        HS_OUTER_MAX
    ctypedef struct hs_contour:
        int b, add, n_threads
        const double *m
        const double *q
        const double *k
        double rtol, T0
    long hs_contour_work(int b, long n_outer)
    int hs_contour_delta(hs_contour *C, double eps, double *work, long n_work, hs_point *out)
    int hs_contour_eps(hs_contour *C, double log_delta, double *work, long n_work, double *lower, double *estimate,
                       double *upper, hs_point *out)
