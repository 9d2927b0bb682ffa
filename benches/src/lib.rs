//! Benchmarks of tollgate, one file per question.
