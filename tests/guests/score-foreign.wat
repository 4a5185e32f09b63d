;; Scores an area of somebody else.
(func $run (param $target i32) (result i32)
  (call $score 'hostile' (f64.const 100) (i32.const 0) (f64.const 0))
  (call $score 'catalog' (f64.const 0) (i32.const 0) (f64.const 0))
  (call $finish))
