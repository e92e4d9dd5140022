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
        HS_BAD_ARGUMENT, HS_OUTER_MAX
    ctypedef struct hs_pair:
        pass
    ctypedef struct hs_contour:
        int b, add, n_threads
        long n_max
        const double *m
        const double *q
        const double *k
        const hs_pair *pair
        double rtol, T0, t
    long hs_contour_work(int b, long n_outer)
    int hs_contour_chernoff_upper(hs_contour *C, int have_eps, double value, double *work, long n_work, double *upper)
    int hs_contour_delta(hs_contour *C, double eps, double *work, long n_work, hs_point *out)
    int hs_contour_curve(hs_contour *C, long n, const double *eps, double *work, long n_work, double *out)
    int hs_contour_eps(hs_contour *C, double log_delta, double *work, long n_work, double *lower, double *estimate,
                       double *upper, hs_point *out)
    # grid.c, convolve.c
    int hs_grid_prv(double m, double q, int add, double dx, long j0, long n, double *p, double *mass, double *mean,
                       double *abs_mean, double *edge_upper)
    int hs_grid_log_mgf(long j0, long n, double dx, const double *p, double t, double *log_mgf)
    int hs_convolve_tilt(long j0, long n, double dx, const double *p, double t, double log_mgf, long n_fft, double *w,
                            double *abs_exponent)
    int hs_convolve_power(long n, const double *spec, double point, double k, int first, int n_threads, double *product)
    int hs_convolve_multiply(long n, double *a, const double *b)
    int hs_convolve_norms(long n, const double *x, double *norm2, double *norm1)
    int hs_convolve_tail(long n, const double *r, long j_lo, double dx, double t, double log_scale, long n_keep,
                            double *mass, double *delta)
    # pld.c
    int hs_normal_tails(long n, const double *x, double *below, double *above)
    int hs_pld_cells(long n, double s0, double w, const double *y_below, const double *y_above, const double *x_below,
                         const double *x_above, const double *rel, double edge, double absolute, double *y_upper,
                         double *u_upper, double *y_lower, double *u_lower)
    int hs_pld_upper(long n, double w, const double *y_upper, const double *u_upper, double bottom, double *p)
    int hs_pld_lower(long n, double w, const double *y_lower, const double *u_lower, double top, double t, double *p)
    # sampling.c
    int hs_sampling_truncation(double p, double n, double max_batch, double *out)
    int hs_sampling_tails(double q, double q_err, double up, double down, long n, const double *s, double *y_below,
                          double *y_above, double *x_below, double *x_above, double *rel, double *edge)
    # twosided.c
    long hs_two_work()
    int hs_two_transform(const hs_pair *pair, double z, double y, double target, double *work, long n_work, double *out)
