;; Scores its area with no number.
(func $run (param $target i32) (result i32)
  (call $score 'hostile' (f64.const nan) (i32.const 0) (f64.const 0))
  (call $finish))
