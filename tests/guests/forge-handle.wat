;; Uses a handle that it was never given.
(func $run (param $target i32) (result i32)
  (call $facts (i32.const 77) (i32.const 512))
  (call $finish))
