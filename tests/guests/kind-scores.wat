;; Scores an area, which kinds have none of.
(func $run (param $target i32) (result i32)
  (call $score 'hostile' (f64.const 100) (i32.const 0) (f64.const 0))
  (call $finish))
