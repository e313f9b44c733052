"""Who checks: recomputes every promise from the published tables; borrows nothing from methods, solvers or kernels."""
