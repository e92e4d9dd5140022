# The C names that the gate may call; csrc/hs.h is the contract.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

cdef extern from "Python.h":
    int PyErr_CheckSignals() noexcept  # the exception of a handler stays pending

cdef extern from "hs.h" nogil:
    ctypedef struct hs_poll:
        int (*ask)() noexcept nogil
        double work
        int stop
    ctypedef struct hs_point:
        double log_scale, estimate, lower, upper
        double aliasing, truncation, inner, rounding
        int64_t n_nodes
    int hs_status_last()
    int64_t hs_hyperbola_work(int b)
    int hs_hyperbola_delta(int b, const double *m, const double *q, const double *k, int add, double eps,
                           double log_tol, double *work, int64_t n_work, hs_point *out)
    int hs_hyperbola_eps(int b, const double *m, const double *q, const double *k, int add, double log_delta,
                         double log_tol, double *work, int64_t n_work, double *eps_lower, double *eps_estimate,
                         double *eps_upper, hs_point *out)
    enum:
        HS_BAD_ARGUMENT, HS_OUTER_MAX, HS_CHUNKS, HS_STEP_COLUMNS
    ctypedef struct hs_pair:
        pass
    ctypedef struct hs_contour:
        int b, add, n_threads
        int64_t n_max
        const double *m
        const double *q
        const double *k
        const hs_pair *pair
        double rtol, T0, t
        hs_poll *poll
    int64_t hs_contour_work(int b, int n_threads, int64_t n_outer)
    int hs_contour_chernoff_upper(hs_contour *C, int have_eps, double value, double *work, int64_t n_work,
                                  double *upper)
    int hs_contour_delta(hs_contour *C, double eps, double *work, int64_t n_work, hs_point *out)
    int hs_contour_curve(hs_contour *C, int64_t n, const double *eps, double *work, int64_t n_work, double *out)
    int hs_contour_eps(hs_contour *C, double log_delta, double *work, int64_t n_work, double *lower, double *estimate,
                       double *upper, hs_point *out)
    # grid.c, convolve.c
    int hs_grid_prv(double m, double q, int add, double dx, int64_t j0, int64_t n, double *p, double *mass,
                    double *mean, double *abs_mean, double *edge_upper)
    int hs_grid_log_mgf(int64_t j0, int64_t n, double dx, const double *p, double t, double *log_mgf)
    int hs_grid_log_mgfs(int64_t steps, const int64_t *j0, const int64_t *start, double dx, const double *p,
                         int64_t tilts, const double *t, double *log_mgf)
    int hs_convolve_tilt(int64_t j0, int64_t n, double dx, const double *p, double t, double log_mgf, int64_t n_fft,
                         double *w)
    int hs_convolve_tilts(int64_t steps, const int64_t *j0, const int64_t *start, double dx, const double *p, double t,
                          const double *log_mgf, int64_t n_fft, double *w, double *point, double *norm2, double *norm1)
    int hs_convolve_powers(int64_t n, int64_t rows, const double *spec, const double *point, const double *k,
                           int n_threads, int first, double *product)
    int hs_convolve_multiply(int64_t n, double *a, const double *b)
    int hs_convolve_norms(int64_t n, double *x, double scale, double *norm2, double *norm1)
    int hs_convolve_tail(int64_t n, const double *r, int64_t j_lo, double dx, double t, double log_scale,
                         int64_t n_keep, double *mass, double *delta)
    # individual.c
    int hs_individual_charge(int64_t n, int is_float, const void *norms, double scale, double top, int64_t limit,
                             int sticky, int turn, const int64_t *spent, int64_t *after, uint8_t *active, int n_threads,
                             uint64_t *checksum, int64_t *bad)
    int hs_individual_charge_some(int64_t n, int64_t m, int is_float, const void *norms, const int64_t *index,
                                  double scale,
                                  double top, int64_t limit, int sticky, const int64_t *spent, int64_t *after,
                                  uint8_t *active, uint64_t *change, int64_t *bad)
    int hs_individual_scatter(int64_t n, int64_t m, const int64_t *index, const int64_t *words, int64_t *spent)
    int hs_individual_checksum(int64_t n, const int64_t *spent, int64_t limit, int n_threads, uint64_t *checksum)
    int hs_individual_tilts(int levels, const double *m, const double *q, int add, double k_total, int tilts,
                            const double *t, int n_threads, hs_poll *poll, double *work, int64_t n_work, double *up)
    int hs_individual_chernoff(int64_t records, int levels, const int32_t *counts, int tilts, const double *t,
                               const double *up, double log_delta, int n_threads, hs_poll *poll, double *best,
                               int32_t *which)
    int64_t hs_individual_work(int levels)
    int hs_individual_group(int levels, const double *m, const double *q, const double *k, int add, double margin,
                            double T0, double k_total, int64_t records, const int32_t *counts, double log_delta,
                            int n_threads, hs_poll *poll, double *work, int64_t n_work, double *eps_upper, double *gap)
    # tails.c
    int hs_normal_tails(int64_t n, const double *x, double *below, double *above)
    int hs_poisson_place(double q, int64_t n, const double *s, double *g, int64_t *first, double *edge, double *slope)
    int hs_poisson_tails(double q, double all_y, double all_x, int64_t first, int64_t n, double *y_below,
                         double *y_above, double *x_below, double *x_above, double *rel)
    # pld.c
    int hs_pld_cells(int64_t n, double s0, double w, const double *y_below, const double *y_above,
                     const double *x_below,
                         const double *x_above, const double *rel, double edge, double absolute, double *y_upper,
                         double *u_upper, double *y_lower, double *u_lower)
    # batch.c
    int64_t hs_batch_work(int n_threads)
    int hs_batch(int64_t n, const double *m, const double *q, const double *k, const double *at, int want_eps,
                 int directions, int replaced,
                 double rtol, double T0, double widest, int n_threads, hs_poll *poll, double *work, int64_t n_work,
                 double *lower, double *estimate, double *upper, unsigned char *done)
    int hs_pld_upper(int64_t n, int m, double w, const double *y_upper, const double *u_upper, double bottom, double *p)
    int hs_pld_lower(int64_t n, int m, double w, const double *y_lower, const double *u_lower, double top, double t,
                     double *p)
    int hs_pld_laws(int64_t n, int m, double s0, double w, double *tails, double edge, double absolute, double t,
                    int cut, double *p_upper, double *p_lower, double *p_inf)
    # pld_steps.c
    enum: HS_PLD_LANES
    int hs_step_tails(const double *step, int64_t n, const double *s, double *o, double *edge)
    int64_t hs_step_nodes(int64_t steps, const double *table, double p, int64_t gl)
    int hs_pld_step_nodes(const double *step, double p, int64_t gl, const double *x, const double *w, int64_t room,
                          int64_t *n, double *loss, double *log_den)
    int hs_pld_windows(int64_t steps, const double *table, double p_low, double p_high, double *lo, double *hi)
    int hs_pld_steps(int64_t steps, const double *table, int m, double dx, double t, const double *at,
                     const int64_t *first, const int64_t *start, const int64_t *size, double *work, double *p_upper,
                     double *p_lower, double *edge, double *p_inf)
    int hs_pld_table(int64_t up, int64_t down, double t0, int64_t n, const double *loss, const double *log_den,
                     double k, double *work, double *k0, double *k1, double *k2)
    int hs_pld_tables(int64_t steps, const double *table, const double *k, double p, int64_t gl, const double *x,
                      const double *w,
                      int64_t up, int64_t down, double t0, int64_t room, double *work, double *k0, double *k1,
                      double *k2, double *far)
    # sampling.c
    int hs_sampling_truncation(double p, double n, double max_batch, double *out)
    int hs_sampling_tails(double q, double q_err, double up, double down, int64_t n, const double *s, double *y_below,
                          double *y_above, double *x_below, double *x_above, double *rel, double *edge)
    # twosided.c
    int64_t hs_two_work()
    int hs_two_transform(const hs_pair *pair, double z, double y, double target, double *work, int64_t n_work,
                         double *out)
    # saddlepoint.c
    int64_t hs_saddle_work()
    ctypedef struct hs_saddle:
        double lower, estimate, upper, log_estimate, raw_estimate, tilt, skew
        double berry_esseen, quadrature, rounding
        int kind
    int hs_saddle_delta(int b, const double *m, const double *q, const double *k, int add, double eps, int kind,
                        hs_poll *poll, double *work, int64_t n_work, hs_saddle *out)
    int hs_saddle_eps(int b, const double *m, const double *q, const double *k, int add, double log_delta, int kind,
                      hs_poll *poll, double *work, int64_t n_work, hs_saddle *out)
    int hs_saddle_eps_both(int b, const double *m, const double *q, const double *k, double log_delta, int kind,
                           double wall, hs_poll *poll, double *work, int64_t n_work, hs_saddle *out)
    int hs_saddle_cumulants(int b, const double *m, const double *q, const double *k, int add, double t, hs_poll *poll,
                            double *work, int64_t n_work, double *out)
    int hs_saddle_moments_upper(int b, const double *m, const double *q, const double *k, int add, int have_eps,
                                double value, hs_poll *poll, double *work, int64_t n_work, double *tilt, double *upper)
    int hs_saddle_delta_upper(int b, const double *m, const double *q, const double *k, int add, double eps,
                              double enough, int n_threads, hs_poll *poll, double *work, int64_t n_work, double *upper)
    ctypedef struct hs_atoms:
        const int64_t *first
        const double *loss
        const double *num
        const double *rel
        const double *edge
        const double *inf
    int hs_saddle_atoms(int b, const hs_atoms *atoms, const double *k, int have_eps, double value, int kind,
                        hs_saddle *out)
    int hs_saddle_atoms_cgf(int b, const hs_atoms *atoms, const double *k, double t, double *K, double *err)
    # edgeworth.c
    int hs_edgeworth_moments(int family, double m, double q, const double *x, const double *w, int n_gl, double *A,
                             double *B)
    int hs_edgeworth_totals(int b, const int *family, const double *m, const double *q, const double *k, int add,
                            const double *x, const double *w, int n_gl, hs_poll *poll, double *Y, double *X)
    int hs_edgeworth_delta(const double *Y, const double *X, int form, int order, double eps, double *log_scale,
                           double *value)
    int hs_edgeworth_eps(const double *Y, const double *X, int form, int order, double log_delta, double *eps)
    # prawitz.c
    ctypedef struct hs_prawitz:
        int b, add, n_gl
        const int *family
        const double *m
        const double *q
        const double *k
        const double *x
        const double *w
        double T0, T, limit, smooth
        hs_poll *poll
    int64_t hs_prawitz_work()
    int hs_prawitz_delta(hs_prawitz *S, double eps, double *work, int64_t n_work, hs_point *out)
    int hs_prawitz_eps(hs_prawitz *S, double log_delta, double *work, int64_t n_work, double *lower, double *estimate,
                       double *upper, hs_point *out)
    # edgeworth_bound.c
    int hs_edgeworth_bounded(int family, double m, double q, int which, const double *x, const double *w, int n_gl,
                             double *out)
    int hs_edgeworth_modulus_upper(int family, double m, double q, int which, const double *x, const double *w,
                                   int n_gl, double y0, double y1, double *work, int64_t n_work, double *modulus)
    # mixed.c, laplace.c
    ctypedef struct hs_mixed:
        int b
        double step, step_low, d_step, shift, d_shift
        const double *table
        const double *x
        const double *l
        const double *lp
        const double *dl
        const double *dp
        double rtol, T0
        int64_t n_nodes
        hs_poll *poll
    int64_t hs_mixed_work(int64_t n_points, int64_t n_subnormal, int64_t n_nodes)
    int hs_mixed_delta(hs_mixed *A, double eps, double *work, int64_t n_work, hs_point *out)
    int hs_mixed_eps(hs_mixed *A, double log_delta, double *work, int64_t n_work, double *lower, double *estimate,
                     double *upper, hs_point *out)
    int hs_mixed_cgf(hs_mixed *A, double t, double *work, int64_t n_work, double *K, double *err)
    int hs_sublaplace_points(double m, double q, int add, int64_t panels, int64_t n, const double *node,
                             const double *weight, double *l, double *lp, double *dl, double *dp)
