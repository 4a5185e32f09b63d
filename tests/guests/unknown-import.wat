;; Wants something that no host gives.
(func $run (param $target i32) (result i32)
  (call $open-door)
  (call $finish))
