// SPDX-License-Identifier: BSD-3-Clause
#include "least_squares.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <stdexcept>

namespace hcasim::bench {

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr unsigned kMostRounds = 12;
constexpr double kStep = 0.1;       // half of a difference, of the value ...
constexpr double kStepGrains = 10;  // ... or so many grains
constexpr double kMostChange = 2;   // factor, in a round
constexpr double kEnough = 0.003;   // change of a value that is none any more
constexpr double kNoiseMargin = 1.5;
constexpr double kAsGood = 0.1;        // of the root mean square of residuals
constexpr std::size_t kMostJumps = 8;  // rows that a step does without
constexpr double kPartner = 0.1;       // of unknowns that move together: share of the other's movement

class Solver {
 public:
  Solver(const std::vector<Unknown>& unknowns, const std::vector<Target>& targets,
         const Simulation& simulation)
      : unknowns_(unknowns),
        targets_(targets),
        simulation_(simulation),
        n_(static_cast<Eigen::Index>(unknowns.size())),
        m_(static_cast<Eigen::Index>(targets.size())),
        frozen_(unknowns.size()) {}

  Solution run(const std::function<void(unsigned, double)>& progress) {
    Solution s;
    Point p;
    for (const Unknown& u : unknowns_) p.push_back(u.start);
    s.before = s.after = simulation_({p}, false).front();
    VectorXd residual = residual_of(s.after);
    s.rms_before = rms(residual);
    descend(p, residual, s, progress);
    judge(p, residual, s);
    // What too little depends on has gone somewhere; it goes back if the figures are met as well without.
    Point back = p;
    for (std::size_t j = 0; j < p.size(); ++j) {
      if (s.estimates[j].known != Known::kHardly || p[j] == unknowns_[j].start) continue;
      back[j] = unknowns_[j].start;
      frozen_[j] = true;
    }
    if (const auto figures = back != p ? simulation_({back}, false).front() : std::vector<double>();
        !figures.empty()) {
      Solution without = s;
      without.after = figures;
      VectorXd residual_without = residual_of(without.after);
      descend(back, residual_without, without, progress);
      if (rms(residual_without) < rms(residual) + kAsGood) {
        const std::vector<Estimate> first = s.estimates;
        s = without;
        judge(back, residual_without, s);
        for (std::size_t j = 0; j < first.size(); ++j) {
          if (frozen_[j]) s.estimates[j].known = first[j].known;
        }
      }
    }
    return s;
  }

 private:
  // Rounds of Gauss-Newton, until nothing changes; the Jacobian is that of the end.
  void descend(Point& p, VectorXd& residual, Solution& s,
               const std::function<void(unsigned, double)>& progress) {
    for (unsigned round = 0; round < kMostRounds; ++round) {
      if (progress) progress(s.rounds, rms(residual));
      ++s.rounds;
      differentiate(p, residual);
      if (round == 0 && best_of(hidden(p), p, residual, s)) differentiate(p, residual);
      const double last = residual.squaredNorm();
      const Point from = p;
      best_of(steps(p, residual), p, residual, s);
      double change = 0;
      for (std::size_t j = 0; j < p.size(); ++j)
        change = std::max(change, std::abs(p[j] - from[j]) / scale(j, from[j]));
      if (change >= kEnough && residual.squaredNorm() < 0.999 * last) continue;
      if (rms(residual) < 1) break;
      if (!best_of(hidden(p), p, residual, s) && !best_of(without_jumps(p, residual), p, residual, s)) break;
    }
    if (progress) progress(s.rounds, rms(residual));
    s.rms_after = rms(residual);
    differentiate(p, residual);
  }

  // Goes to the best of the candidates, if one is better; if none is, half the way to those that cannot be
  // simulated, and so on. False: none is.
  bool best_of(const std::vector<Point>& candidates, Point& p, VectorXd& residual, Solution& s) {
    if (candidates.empty()) return false;
    const auto figures = simulation_(candidates, false);
    std::vector<Point> nearer;
    bool any = false;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (figures[i].empty()) {
        const Point half = between(p, candidates[i]);
        if (half != p && half != candidates[i]) nearer.push_back(half);
        continue;
      }
      const VectorXd r = residual_of(figures[i]);
      if (!(r.squaredNorm() < residual.squaredNorm())) continue;
      residual = r;
      p = candidates[i];
      s.after = figures[i];
      any = true;
    }
    return any || best_of(nearer, p, residual, s);
  }
  Point between(const Point& a, const Point& b) const {
    Point half;
    for (std::size_t j = 0; j < a.size(); ++j) half.push_back(rounded(j, (a[j] + b[j]) / 2));
    return half;
  }

  // What nothing depends on here may be hidden by what is slower, and matter at another value.
  std::vector<Point> hidden(const Point& p) const {
    std::vector<Point> candidates;
    for (std::size_t j = 0; j < p.size(); ++j) {
      if (frozen_[j] || jacobian_.col(static_cast<Eigen::Index>(j)).norm() != 0) continue;
      for (const double factor : {2.0, 4.0, 8.0, 0.5, 0.25, 0.125}) {
        candidates.push_back(p);
        candidates.back()[j] = rounded(j, scale(j, p[j]) * factor);
      }
    }
    return candidates;
  }

  // By which a value's changes are measured: itself; of one that is nearly 0, some grains.
  double scale(std::size_t j, double value) const { return std::max(value, 4 * unknowns_[j].grain); }
  double rounded(std::size_t j, double value) const {
    const Unknown& u = unknowns_[j];
    return std::clamp(std::round(value / u.grain) * u.grain, u.low, u.high);
  }
  double rms(const VectorXd& residual) const {
    return std::sqrt(residual.squaredNorm() / static_cast<double>(std::max<Eigen::Index>(1, m_)));
  }

  VectorXd residual_of(const std::vector<double>& figures) const {
    VectorXd r(m_);
    if (figures.empty() ||
        std::any_of(figures.begin(), figures.end(), [](double f) { return !std::isfinite(f); }))
      throw std::runtime_error("a row has no simulated figure");
    for (Eigen::Index i = 0; i < m_; ++i) {
      const Target& t = targets_[static_cast<std::size_t>(i)];
      const double off = figures.at(static_cast<std::size_t>(i)) - t.value;
      r(i) = t.at_most && off < 0 ? 0 : off / t.deviation;
    }
    return r;
  }

  // jacobian_: of the residuals, for a change of each unknown by all of its scale; noise_: of its columns.
  void differentiate(const Point& p, const VectorXd& residual) {
    std::vector<Point> points;  // two for each unknown
    for (std::size_t j = 0; j < p.size(); ++j) {
      const Unknown& u = unknowns_[j];
      const double half = std::max(kStep * p[j], kStepGrains * u.grain);
      for (const double value : {p[j] - half, p[j] + half}) {
        points.push_back(p);
        if (!frozen_[j]) points.back()[j] = rounded(j, value);
      }
    }
    auto figures = simulation_(points, true);
    // Where there is nothing to one side, the difference is that from here to the other.
    if (std::any_of(figures.begin(), figures.end(), [](const auto& f) { return f.empty(); })) {
      const auto here = simulation_({p}, true).front();
      for (std::size_t i = 0; i < figures.size(); ++i) {
        if (!figures[i].empty()) continue;
        figures[i] = here;
        points[i] = p;
      }
    }
    jacobian_.setZero(m_, n_);
    noise_.setZero(n_);
    for (Eigen::Index j = 0; j < n_; ++j) {
      const auto k = static_cast<std::size_t>(j);
      const double wide = points[2 * k + 1][k] - points[2 * k][k];
      // A range of one value, or there is nothing to either side.
      if (wide <= 0 || figures[2 * k].empty() || figures[2 * k + 1].empty()) continue;
      const double factor = scale(k, p[k]) / wide;
      double noise = 0;
      for (Eigen::Index i = 0; i < m_; ++i) {
        const auto row = static_cast<std::size_t>(i);
        const Target& t = targets_[row];
        if (t.at_most && residual(i) <= 0) continue;
        jacobian_(i, j) = (figures[2 * k + 1][row] - figures[2 * k][row]) * factor / t.deviation;
        noise += std::pow(t.noise * factor / t.deviation, 2);
      }
      noise_(j) = std::sqrt(noise);
      if (frozen_[k] || jacobian_.col(j).norm() <= 2 * noise_(j)) jacobian_.col(j).setZero();
    }
  }

  // How many directions are known: those along which the standard deviation is less than all of the value,
  // and that are not the steps of the simulation.
  Eigen::Index rank_of(const VectorXd& singular) const {
    const double least = std::max(1.0, n_ == 0 ? 0 : kNoiseMargin * noise_.maxCoeff());
    Eigen::Index rank = 0;
    while (rank < singular.size() && singular(rank) > least) ++rank;
    return rank;
  }

  // Where to look next: the Gauss-Newton step in the directions that are known, half of it, and shorter ones
  // that lean towards the steepest descent (Levenberg-Marquardt).
  std::vector<Point> steps(const Point& p, const VectorXd& residual) const {
    return steps(p, residual, jacobian_, {0.0, -1.0, 1e-4, 1e-2, 1.0});
  }
  std::vector<Point> steps(const Point& p, const VectorXd& residual, const MatrixXd& of,
                           std::initializer_list<double> dampings) const {
    std::vector<Point> candidates;
    for (const double damping : dampings) {
      MatrixXd jacobian = of;
      VectorXd change = step(jacobian, residual, damping);
      // What a limit stops gets no further; the others then have to do without it.
      bool stopped = false;
      for (Eigen::Index j = 0; j < n_; ++j) {
        const auto k = static_cast<std::size_t>(j);
        if (!(p[k] <= unknowns_[k].low && change(j) < 0) && !(p[k] >= unknowns_[k].high && change(j) > 0))
          continue;
        jacobian.col(j).setZero();
        stopped = true;
      }
      if (stopped) change = step(jacobian, residual, damping);
      Point to = p;
      for (std::size_t k = 0; k < p.size(); ++k) {
        const double most = std::log(kMostChange);
        const double by = std::clamp(change(static_cast<Eigen::Index>(k)), -most, most);
        to[k] = rounded(k, p[k] + scale(k, p[k]) * std::expm1(by));
      }
      candidates.push_back(to);
    }
    return candidates;
  }

  // A figure that jumps (a queue that runs dry now and then) has differences that say nothing of where to go,
  // and leads all others astray. Steps without the rows that do least what their differences say.
  std::vector<Point> without_jumps(const Point& p, const VectorXd& residual) const {
    const Point to = steps(p, residual, jacobian_, {0.0}).front();
    VectorXd change(n_);
    for (Eigen::Index j = 0; j < n_; ++j) {
      const auto k = static_cast<std::size_t>(j);
      change(j) = (to[k] - p[k]) / scale(k, p[k]);
    }
    const auto figures = simulation_({to}, false).front();
    if (figures.empty()) return {};
    const VectorXd surprise = (residual_of(figures) - residual - jacobian_ * change).cwiseAbs();
    std::vector<Eigen::Index> rows(static_cast<std::size_t>(m_));
    std::iota(rows.begin(), rows.end(), 0);
    std::stable_sort(rows.begin(), rows.end(),
                     [&](Eigen::Index a, Eigen::Index b) { return surprise(a) > surprise(b); });
    std::vector<Point> candidates;
    MatrixXd jacobian = jacobian_;
    VectorXd of_others = residual;
    for (std::size_t i = 0; i < std::min(kMostJumps, rows.size()); ++i) {
      jacobian.row(rows[i]).setZero();
      of_others(rows[i]) = 0;
      for (const Point& step : steps(p, of_others, jacobian, {0.0, -1.0})) candidates.push_back(step);
    }
    return candidates;
  }

  // damping: of the largest singular value squared; below 0: half a step without.
  VectorXd step(const MatrixXd& jacobian, const VectorXd& residual, double damping) const {
    const Eigen::JacobiSVD<MatrixXd> svd(jacobian, Eigen::ComputeThinU | Eigen::ComputeThinV);
    const VectorXd& singular = svd.singularValues();
    VectorXd along = svd.matrixU().transpose() * residual;
    const Eigen::Index rank = rank_of(singular);
    for (Eigen::Index k = 0; k < along.size(); ++k) {
      const double s = singular(k), most = singular(0);
      along(k) = k < rank ? -along(k) * s / (s * s + std::max(0.0, damping) * most * most) : 0;
    }
    return svd.matrixV() * along * (damping < 0 ? 0.5 : 1);
  }

  void judge(const Point& p, const VectorXd& residual, Solution& s) const {
    s.estimates.clear();
    s.combinations.clear();
    const Eigen::JacobiSVD<MatrixXd> svd(jacobian_, Eigen::ComputeThinU | Eigen::ComputeFullV);
    const VectorXd& singular = svd.singularValues();
    const Eigen::Index rank = rank_of(singular);
    VectorXd scales(n_);
    for (Eigen::Index j = 0; j < n_; ++j)
      scales(j) = scale(static_cast<std::size_t>(j), p[static_cast<std::size_t>(j)]);
    const MatrixXd known = svd.matrixV().leftCols(rank), unknown = svd.matrixV().rightCols(n_ - rank);
    const auto freedom = static_cast<double>(std::max<Eigen::Index>(1, m_ - rank));
    const double excess = std::max(1.0, residual.squaredNorm() / freedom);
    const VectorXd inverse = singular.head(rank).cwiseAbs2().cwiseInverse() * excess;
    const MatrixXd covariance =
        scales.asDiagonal() * known * inverse.asDiagonal() * known.transpose() * scales.asDiagonal();
    const MatrixXd free = scales.asDiagonal() * unknown * unknown.transpose() * scales.asDiagonal();
    for (std::size_t j = 0; j < p.size(); ++j) {
      const auto k = static_cast<Eigen::Index>(j);
      Estimate e;
      e.value = p[j];
      e.at_limit = p[j] <= unknowns_[j].low || p[j] >= unknowns_[j].high;
      e.error = std::sqrt(std::max(0.0, covariance(k, k)));
      // Its own share in what is not known, of all of its scale.
      const double share = std::sqrt(std::max(0.0, free(k, k))) / scales(k);
      e.known = share < 0.05 ? e.error <= 0.25 * scales(k) ? Known::kYes : Known::kWeakly : Known::kHardly;
      if (jacobian_.col(k).norm() == 0) e.known = Known::kNo;
      s.estimates.push_back(e);
    }
    combine(p, free, covariance, known, scales, s);
  }

  // The groups of unknowns that move together where nothing is known.
  void combine(const Point& p, const MatrixXd& free, const MatrixXd& covariance, const MatrixXd& known,
               const VectorXd& scales, Solution& s) const {
    std::vector<bool> placed(p.size());
    for (std::size_t j = 0; j < p.size(); ++j) {
      if (placed[j] || s.estimates[j].known != Known::kHardly ||
          jacobian_.col(static_cast<Eigen::Index>(j)).norm() == 0)
        continue;
      std::vector<std::size_t> group{j};
      placed[j] = true;
      for (std::size_t at = 0; at < group.size(); ++at) {
        const auto a = static_cast<Eigen::Index>(group[at]);
        for (std::size_t other = 0; other < p.size(); ++other) {
          const auto b = static_cast<Eigen::Index>(other);
          if (placed[other] || jacobian_.col(b).norm() == 0 || !together(free, scales, a, b)) continue;
          placed[other] = true;
          group.push_back(other);
        }
      }
      if (group.size() < 2) continue;
      std::sort(group.begin(), group.end());
      double loose = 0;
      for (const std::size_t k : group) {
        const auto i = static_cast<Eigen::Index>(k);
        loose += free(i, i) / (scales(i) * scales(i));
      }
      Combination c;
      c.unknowns = group;
      const auto unknown = static_cast<std::size_t>(std::lround(loose));
      c.known = group.size() - std::min(group.size(), unknown);
      const bool one_unit = std::all_of(group.begin(), group.end(), [&](std::size_t k) {
        return unknowns_[k].unit == unknowns_[group.front()].unit;
      });
      if (one_unit && c.known == 1) weigh(p, covariance, known, scales, c);
      if (one_unit && c.known > 1 && c.known + 1 == group.size()) c.nothing = direction(free, group);
      for (const std::size_t k : group) {
        s.estimates[k].known = Known::kTogether;
        s.estimates[k].combination = s.combinations.size();
      }
      s.combinations.push_back(c);
    }
  }

  // Whether one moves noticeably where the other does and nothing is known: of one unit, by how much;
  // otherwise by what share of itself.
  bool together(const MatrixXd& free, const VectorXd& scales, Eigen::Index a, Eigen::Index b) const {
    const bool one_unit =
        unknowns_[static_cast<std::size_t>(a)].unit == unknowns_[static_cast<std::size_t>(b)].unit;
    const double of_a = one_unit ? 1 : scales(a), of_b = one_unit ? 1 : scales(b);
    return std::abs(free(a, b)) / (of_a * of_b) >=
           kPartner * std::max(free(a, a) / (of_a * of_a), free(b, b) / (of_b * of_b));
  }

  static std::vector<double> direction(const MatrixXd& free, const std::vector<std::size_t>& group) {
    std::size_t most = group.front();
    const auto at = [&](std::size_t a, std::size_t b) {
      return free(static_cast<Eigen::Index>(a), static_cast<Eigen::Index>(b));
    };
    for (const std::size_t k : group) {
      if (at(k, k) > at(most, most)) most = k;
    }
    std::vector<double> changes;
    for (const std::size_t k : group) changes.push_back(at(k, most) / at(most, most));
    return changes;
  }

  // The sum that is known: its weights are those that nothing of the unknown changes.
  static void weigh(const Point& p, const MatrixXd& covariance, const MatrixXd& known, const VectorXd& scales,
                    Combination& c) {
    const auto size = static_cast<Eigen::Index>(c.unknowns.size());
    MatrixXd rows(size, known.cols());
    for (Eigen::Index i = 0; i < size; ++i)
      rows.row(i) = known.row(static_cast<Eigen::Index>(c.unknowns[static_cast<std::size_t>(i)]));
    const MatrixXd both = rows * rows.transpose();
    Eigen::Index widest = 0;
    both.diagonal().maxCoeff(&widest);
    VectorXd weights = both.col(widest);
    for (Eigen::Index i = 0; i < size; ++i)
      weights(i) /= scales(static_cast<Eigen::Index>(c.unknowns[static_cast<std::size_t>(i)]));
    Eigen::Index largest = 0;
    weights.cwiseAbs().maxCoeff(&largest);
    const double one = weights(largest);
    weights /= one;
    double variance = 0;
    for (Eigen::Index i = 0; i < size; ++i) {
      const std::size_t a = c.unknowns[static_cast<std::size_t>(i)];
      c.weights.push_back(weights(i));
      c.value += weights(i) * p[a];
      for (Eigen::Index k = 0; k < size; ++k)
        variance += weights(i) * weights(k) *
                    covariance(static_cast<Eigen::Index>(a),
                               static_cast<Eigen::Index>(c.unknowns[static_cast<std::size_t>(k)]));
    }
    c.error = std::sqrt(std::max(0.0, variance));
  }

  const std::vector<Unknown>& unknowns_;
  const std::vector<Target>& targets_;
  const Simulation& simulation_;
  const Eigen::Index n_, m_;
  std::vector<bool> frozen_;
  MatrixXd jacobian_;
  VectorXd noise_;
};

}  // namespace

Solution solve(const std::vector<Unknown>& unknowns, const std::vector<Target>& targets,
               const Simulation& simulation, const std::function<void(unsigned, double)>& progress) {
  return Solver(unknowns, targets, simulation).run(progress);
}

}  // namespace hcasim::bench
