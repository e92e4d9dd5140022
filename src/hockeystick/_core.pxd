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
        double aliasing, truncation, inner, rounding, interpolation
        int64_t n_nodes
    ctypedef struct hs_lent:
        double *work
        int64_t n_work
        int n_threads
        hs_poll *poll
    ctypedef struct hs_fit:
        double of
    ctypedef struct hs_pair:
        pass
    ctypedef struct hs_run:
        int b, add
        const int *kind
        const double *m
        const double *q
        const double *k
        const hs_pair *pair
        int ruled, n_fits, light, apart
        const hs_fit *fits
        int n_outline, light_outline
        const double *outline
    ctypedef struct hs_rule:
        int n
        const double *x
        const double *w
    ctypedef struct hs_crossing:
        double lower, estimate, upper
        hs_point delta
    int hs_status_last()
    enum:
        HS_OK, HS_LOOSE, HS_NO_SADDLE, HS_TOO_WIDE, HS_NO_BRACKET
    enum:
        HS_LAW_NORMAL, HS_LAW_LAPLACE, HS_LAW_POINTS, HS_LAW_POINTS_LOGCONCAVE, HS_LAW_SUBLAPLACE, HS_LAW_SUBNORMAL
        HS_LAW_RANGE, HS_LAW_SUBRANGE, HS_LAW_ALLOCATION, HS_LAW_DENSITY, HS_LAW_MIXTURE
    const int64_t HS_DROPPED, HS_TURN
    enum:
        HS_JUMPS_STEPS
    int64_t hs_jumps_work(int steps)
    int hs_jumps_delta(const hs_run *run, double eps, const hs_rule *rule, double *work, int64_t n_work, hs_point *out)
    int hs_jumps_eps(const hs_run *run, double log_delta, const hs_rule *rule, double *work, int64_t n_work,
                     hs_crossing *out)
    int64_t hs_bulk_line_work()
    int hs_bulk_line_delta(const hs_pair *pair, double k, double eps, double known, const hs_rule *rule, double *work,
                           int64_t n_work, hs_point *out)
    int hs_bulk_line_eps(const hs_pair *pair, double k, double log_delta, double start, double known,
                         const hs_rule *rule, double *work, int64_t n_work, hs_crossing *out)
    int hs_bulk_upper(const hs_pair *pair, double k, double eps, double enough, const hs_rule *rule, double *work,
                      int64_t n_work, double *log_delta)
    int hs_single_delta(const hs_pair *pair, double eps, hs_point *out)
    int64_t hs_hyperbola_work(int b)
    int hs_hyperbola_delta(const hs_run *run, double eps, double log_tol, double *work, int64_t n_work, hs_point *out)
    int hs_hyperbola_eps(const hs_run *run, double log_delta, double log_tol, double *work, int64_t n_work,
                         hs_crossing *out)
    enum:
        HS_BAD_ARGUMENT, HS_OUTER_MAX, HS_SHORT_LINE, HS_SHORT_PAIR, HS_CHUNKS, HS_STEP_COLUMNS
    ctypedef struct hs_contour:
        hs_run run
        int n_threads, more, sides
        int64_t n_max
        const hs_pair *other
        double rtol, T0, t
        hs_poll *poll
    int64_t hs_contour_work(int b, int n_threads, int64_t n_outer)
    int hs_contour_estimate(hs_contour *C, double eps, double *work, int64_t n_work, double *log_delta)
    int hs_contour_chernoff_upper(hs_contour *C, int have_eps, double value, double *work, int64_t n_work,
                                  double *upper)
    int hs_contour_ask(hs_contour *C, int have_eps, double value, double *work, int64_t n_work, hs_crossing *out)
    int hs_contour_curve(hs_contour *C, int64_t n, const double *eps, double *work, int64_t n_work, double *out)
    # both.c
    enum:
        HS_LEFT_OUT
    ctypedef struct hs_ceiling:
        double log_delta, tilt, at_zero
    int hs_contour_larger(hs_contour *C, int have_eps, double value, double known, double *work, int64_t n_work,
                          hs_crossing *out, int *second, hs_ceiling *upper)
    # kept.c
    enum:
        HS_KEPT_MORE
        HS_FITS_MAX
        HS_FIT_NODES
        HS_FIT_TAIL
        HS_FIT_LOSS
        HS_TERM_LANES
    int64_t hs_kept_room()
    int64_t hs_kept_size(const double *kept, int64_t n)
    int64_t hs_kept_work()
    int hs_kept_make(hs_contour *C, int have_eps, double value, double *work, int64_t n_work, double *kept)
    ctypedef struct hs_more:
        int64_t n, n_kept
        const double *rows
    int hs_kept_ask(double *kept, const hs_more *more, int have_eps, double value, double *work, int64_t n_work,
                    hs_crossing *out, double *below)
    # grid.c, convolve.c
    ctypedef struct hs_cell_sums:
        double mass, mean, abs_mean, edge_upper
    int hs_grid_prv(double m, double q, int add, double dx, int64_t j0, int64_t n, double *p, hs_cell_sums *sums)
    int hs_grid_log_mgf(int64_t j0, int64_t n, double dx, const double *p, double t, double *log_mgf)
    ctypedef struct hs_cells:
        int64_t steps
        const int64_t *j0
        const int64_t *start
        double dx
        const double *p
    int hs_grid_log_mgfs(const hs_cells *cells, int64_t tilts, const double *t, double *log_mgf)
    int hs_convolve_tilt(int64_t j0, int64_t n, double dx, const double *p, double t, double log_mgf, int64_t n_fft,
                         double *w)
    int hs_convolve_tilts(const hs_cells *cells, double t, const double *log_mgf, int64_t n_fft, double *w,
                          double *point, double *norm2, double *norm1)
    int hs_convolve_powers(int64_t n, int64_t rows, const double *spec, const double *point, const double *k,
                           int n_threads, int first, double *product)
    int hs_convolve_multiply(int64_t n, double *a, const double *b)
    int hs_convolve_norms(int64_t n, double *x, double scale, double *norm2, double *norm1)
    int hs_convolve_tail(int64_t n, const double *r, int64_t j_lo, double dx, double t, double log_scale,
                         int64_t n_keep, double *mass, double *delta)
    # step_moments.c
    enum:
        HS_STEP_MOMENTS, HS_STEP_BOXES, HS_STEP_LOWEST
        HS_RATE_CELLS, HS_RATE_DEGREES, HS_RATE_LOWEST
    int hs_step_moments_add(int64_t n, const double *m, const int64_t *k, int sign, uint64_t *sums)
    int hs_rate_moments_add(int64_t n, const double *m, const double *q, const int64_t *k, int sign, uint64_t *sums)
    int hs_rate_moments_of(double q, const uint64_t *box, uint64_t *sums)
    int hs_moments_join(int sign, int words, int64_t n, const uint64_t *others, uint64_t *sums)
    int hs_step_moments_read(const uint64_t *sums, double *moments)
    # individual.c
    ctypedef struct hs_charge:
        const void *norms
        double scale, top
        int64_t limit
        int is_float, sticky, turn
    int hs_individual_charge(int64_t n, const hs_charge *step, const int64_t *spent, int64_t *after, uint8_t *active,
                             int n_threads, uint64_t *checksum, int64_t *bad)
    int hs_individual_charge_some(int64_t n, int64_t m, const hs_charge *step, const int64_t *index,
                                  const int64_t *spent, int64_t *after, uint8_t *active, uint64_t *change, int64_t *bad)
    int hs_individual_scatter(int64_t n, int64_t m, const int64_t *index, const int64_t *words, int64_t *spent)
    int hs_individual_checksum(int64_t n, const int64_t *spent, int64_t limit, int n_threads, uint64_t *checksum)
    int hs_individual_tilts(const hs_run *levels, double k_total, int tilts, const double *t, const hs_lent *lent,
                            double *up)
    ctypedef struct hs_counts:
        int64_t records
        int levels
        const int32_t *k
    int hs_individual_chernoff(const hs_counts *counts, int tilts, const double *t, const double *up,
                               double log_delta, const hs_lent *lent, double *best, int32_t *which)
    int64_t hs_individual_work(int levels)
    int hs_individual_group(const hs_run *levels, const hs_counts *counts, double margin, double T0, double k_total,
                            double log_delta, const hs_lent *lent, double *eps_upper, double *gap)
    # tails.c
    int hs_normal_tails(int64_t n, const double *x, double *below, double *above)
    int hs_poisson_place(double q, int64_t n, const double *s, double *g, int64_t *first, double *edge, double *slope)
    int hs_poisson_tails(double q, double all_y, double all_x, int64_t first, int64_t n, double *tails)
    # pld.c
    ctypedef struct hs_fine:
        int64_t n
        int m
        double s0, w, edge, absolute
    int hs_pld_cells(const hs_fine *fine, double *tails)
    # batch.c
    int64_t hs_batch_work(int n_threads)
    ctypedef struct hs_asked:
        int want_eps, directions, replaced
        double rtol, T0, widest
    int hs_batch(int64_t n, const double *m, const double *q, const double *k, const double *at,
                 const hs_asked *asked, const hs_lent *lent, double *ends, unsigned char *done)
    int hs_pld_upper(int64_t n, int m, double w, const double *y_upper, const double *u_upper, double bottom, double *p)
    int hs_pld_lower(int64_t n, int m, double w, const double *y_lower, const double *u_lower, double top, double t,
                     double *p)
    int hs_pld_laws(const hs_fine *fine, double *tails, double t, int cut, double *p_upper, double *p_lower,
                    double *p_inf)
    # pld_steps.c
    enum: HS_PLD_LANES
    int hs_step_tails(const double *step, int64_t n, const double *s, double *tails, double *edge)
    int64_t hs_step_nodes(int64_t steps, const double *table, double p, int64_t gl)
    int hs_pld_step_nodes(const double *step, double p, const hs_rule *rule, int64_t room, int64_t *n, double *loss,
                          double *log_den)
    int hs_pld_windows(int64_t steps, const double *table, double p_low, double p_high, double *lo, double *hi)
    ctypedef struct hs_windows:
        int m
        double dx, t
        const double *at
        const int64_t *first
        const int64_t *start
        const int64_t *size
    int hs_pld_steps(int64_t steps, const double *table, const hs_windows *windows, double *work, double *p_upper,
                     double *p_lower, double *edge, double *p_inf)
    ctypedef struct hs_ladder:
        int64_t up, down
        double t0
    int hs_pld_table(const hs_ladder *tilts, int64_t n, const double *loss, const double *log_den, double k,
                     double *work, double *sums)
    int hs_pld_tables(int64_t steps, const double *table, const double *k, double p, const hs_rule *rule,
                      const hs_ladder *tilts, double *work, double *sums, double *far)
    # sampling.c
    int hs_sampling_truncation(double p, double n, double max_batch, double *out)
    int hs_sampling_tails(double q, double q_err, double up, double down, int64_t n, const double *s, double *tails,
                          double *edge)
    # cgf_upper.c
    int64_t hs_two_work()
    int hs_two_log_m_upper(const hs_pair *pair, double z, double nats, double *work, double *log_m, double *err)
    # saddlepoint.c
    int64_t hs_saddle_work()
    ctypedef struct hs_saddle:
        double lower, estimate, upper, log_estimate, raw_estimate, tilt, skew
        double berry_esseen, quadrature, rounding, interpolation
        int kind
    int hs_saddle_delta(const hs_run *run, double eps, int kind, const hs_lent *lent, hs_saddle *out)
    int hs_saddle_eps(const hs_run *run, double log_delta, int kind, const hs_lent *lent, hs_saddle *out)
    int hs_saddle_eps_both(const hs_run *run, double log_delta, int kind, double wall, const hs_lent *lent,
                           hs_saddle *out)
    int hs_saddle_cumulants(const hs_run *run, double t, const hs_lent *lent, double *out)
    int hs_saddle_moments_upper(const hs_run *run, int have_eps, double value, const hs_lent *lent, double *tilt,
                                double *upper)
    int hs_saddle_delta_upper(const hs_run *run, double eps, double enough, const hs_lent *lent, hs_ceiling *out)
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
    int hs_edgeworth_totals(const hs_run *run, const hs_rule *rule, hs_poll *poll, double *Y, double *X)
    int hs_edgeworth_delta(const double *Y, const double *X, int form, int order, double eps, double *log_scale,
                           double *value)
    int hs_edgeworth_eps(const double *Y, const double *X, int form, int order, double log_delta, double *eps)
    # prawitz.c
    ctypedef struct hs_prawitz:
        hs_run run
        hs_rule rule
        double T0, T, limit, smooth
        hs_poll *poll
    int64_t hs_prawitz_work()
    int hs_prawitz_delta(hs_prawitz *S, double eps, double *work, int64_t n_work, hs_point *out)
    int hs_prawitz_eps(hs_prawitz *S, double log_delta, double *work, int64_t n_work, hs_crossing *out)
    # edgeworth_bound.c
    int hs_edgeworth_bounded(int kind, double m, double q, int which, const hs_rule *rule, double *out)
    int hs_edgeworth_modulus_upper(int kind, double m, double q, int which, const hs_rule *rule, double y0,
                                   double y1, const hs_lent *lent, double *modulus)
    # mixed.c, laplace.c
    ctypedef struct hs_mixed:
        int64_t b
        double step, step_low, d_step, shift, d_shift
        const double *table
        const double *x
        const double *l
        const double *lp
        const double *dl
        const double *dp
        double rtol, T0, wide
        int64_t n_nodes
        double *tables
        int64_t n_tables
        hs_poll *poll
        int keep, complement, placed
        double part, place
    int64_t hs_mixed_work(int64_t b, int64_t n_points, int64_t n_subnormal, int64_t n_nodes)
    int hs_mixed_delta(hs_mixed *A, double eps, double *work, int64_t n_work, hs_point *out)
    int hs_mixed_near(hs_mixed *A, double eps, hs_point *out)
    int hs_mixed_eps(hs_mixed *A, double log_delta, double *work, int64_t n_work, hs_crossing *out)
    int hs_mixed_cgf(hs_mixed *A, double t, double *work, int64_t n_work, double *K, double *err)
    int hs_mixed_upper(hs_mixed *A, double eps, double *work, int64_t n_work, double *log_delta)
    int hs_sublaplace_points(double m, double q, int add, int64_t panels, const hs_rule *rule, double *l, double *lp,
                             double *dl, double *dp)
    int64_t hs_halves_work(int64_t m)
    void hs_halves_sums(int64_t m, int64_t k, const double *step, const double *terms, double start, double *work,
                        int64_t n, double *out)
    void hs_halves_table(int64_t n, const double *num, const double *den, double *out)
    void hs_halves_tails(int64_t n, const double *a, int64_t n_b, const double *b, const double *tails, int64_t n_s,
                         const double *s, double *out)
    ctypedef struct hs_gdp_point:
        double eps
    ctypedef struct hs_gdp_ends:
        double lower, upper, left_lower, left_upper
    int HS_GDP_PIECES
    void hs_gdp_tangent(double mu, double t, double eps, hs_gdp_ends *out)
    void hs_gdp_cover(double mu, int64_t n, hs_gdp_point *p, double *over)
    int64_t hs_gdp_cuts(double mu, double room, double far, int64_t n, const hs_gdp_point *p, const double *over,
                        hs_gdp_point *out)
    double hs_gdp_fit(double best, double end, double close, int64_t n, hs_gdp_point *p)
    ctypedef struct hs_mixture:
        int n
        const double *shift
        const double *weight
        double first, h
        int64_t nodes, beyond
        double reach, turn
    int HS_SHIFTS_MAX
    void hs_mixture_points(const hs_mixture *g, int add, double *l, double *lp, double *dl, double *dp)
    int64_t hs_ranged_work(int64_t points, int64_t widest)
    int hs_ranged_curve(int64_t k, const int64_t *m, double h, int above, double *work, int64_t n_work, double *side)
    int64_t hs_allocation_work()
    int hs_allocation_line(double m, double t, double c, int64_t n, const double *y, double *work, double *out)
    ctypedef struct hs_rejected:
        double m, b, eta, last
    int hs_term_turned(int64_t n, const double *term, int64_t n_y, const double *y, double *out)
    int hs_term_transform(int64_t n, const double *term, int whole, int64_t n_s, const double *s, double *out)
    int hs_term_grown(int64_t n, const double *term, double r, double rho, double *out)
    int hs_term_jumps(const hs_rejected *R, int64_t n_x, const double *x, int64_t n_y, const double *y, double *out)
    int hs_term_two(double m, double peak, int64_t n_x, const double *x, int64_t n, const double *cell, int64_t shells,
                    const double *shell, double *out)
