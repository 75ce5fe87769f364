//! Levenberg and Marquardt's method on the logarithms of the figures.

use crate::paper::machine::Figures;

/// Pulls figures that the data say nothing about towards where they began.
const PRIOR: f64 = 0.05;

/// A figure changes at most by this logarithm in a step.
const LONGEST_STEP: f64 = 0.5;

/// The figures, of those named, that make the squares of the residuals smallest.
pub fn fit(
    start: &Figures,
    names: &[&str],
    residuals: &(dyn Fn(&Figures) -> Vec<f64> + Sync),
) -> Figures {
    let with = |x: &[f64]| {
        let mut figures = start.clone();
        for (name, x) in names.iter().zip(x) {
            *figures.get_mut(name) = x.exp();
        }
        figures
    };
    let begin: Vec<f64> = names.iter().map(|name| start.clone().get_mut(name).ln()).collect();
    let all = |x: &[f64]| {
        let mut r = residuals(&with(x));
        r.extend(x.iter().zip(&begin).map(|(x, x0)| PRIOR * (x - x0)));
        r
    };
    let (mut x, mut damping) = (begin.clone(), 1e-2);
    let mut r = all(&x);
    for _ in 0..15 {
        let columns = jacobian(&x, &r, &all);
        let before = squares(&r);
        let mut better = None;
        for _ in 0..8 {
            let step = step(&columns, &r, damping);
            let next: Vec<f64> = x.iter().zip(&step).map(|(x, dx)| x + dx).collect();
            let next_r = all(&next);
            if squares(&next_r) < before {
                better = Some((next, next_r));
                break;
            }
            damping *= 4.0;
        }
        let Some((next, next_r)) = better else { break };
        let gain = before - squares(&next_r);
        (x, r) = (next, next_r);
        damping = (damping / 5.0_f64).max(1e-7);
        eprintln!("loss {:.5}", squares(&r));
        if gain < 1e-5 * before {
            break;
        }
    }
    with(&x)
}

fn squares(r: &[f64]) -> f64 {
    r.iter().map(|x| x * x).sum()
}

/// Derivatives of the residuals, one column per figure.
fn jacobian(x: &[f64], r: &[f64], all: &(dyn Fn(&[f64]) -> Vec<f64> + Sync)) -> Vec<Vec<f64>> {
    const STEP: f64 = 1e-3;
    let column = |j: usize| {
        let mut moved = x.to_vec();
        moved[j] += STEP;
        all(&moved).iter().zip(r).map(|(a, b)| (a - b) / STEP).collect()
    };
    std::thread::scope(|scope| {
        let tasks: Vec<_> = (0..x.len()).map(|j| scope.spawn(move || column(j))).collect();
        tasks.into_iter().map(|task| task.join().expect("no panic")).collect()
    })
}

/// The damped step towards smaller residuals.
fn step(columns: &[Vec<f64>], r: &[f64], damping: f64) -> Vec<f64> {
    let n = columns.len();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let mut row: Vec<f64> = (0..n).map(|j| dot(&columns[i], &columns[j])).collect();
            row[i] += damping * (row[i] + 1e-9);
            row.push(-dot(&columns[i], r));
            row
        })
        .collect();
    solve(&mut rows).iter().map(|dx| dx.clamp(-LONGEST_STEP, LONGEST_STEP)).collect()
}

/// Solves linear equations, each row with its right side last, by elimination with pivots.
fn solve(rows: &mut [Vec<f64>]) -> Vec<f64> {
    let n = rows.len();
    for i in 0..n {
        let largest = (i..n).max_by(|&a, &b| rows[a][i].abs().total_cmp(&rows[b][i].abs()));
        rows.swap(i, largest.expect("at least row i"));
        let (above, below) = rows.split_at_mut(i + 1);
        for row in below {
            let factor = row[i] / above[i][i];
            for (a, b) in row[i..].iter_mut().zip(&above[i][i..]) {
                *a -= factor * b;
            }
        }
    }
    let mut x = vec![0.0; n];
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| rows[i][j] * x[j]).sum();
        x[i] = (rows[i][n] - known) / rows[i][i];
    }
    x
}
