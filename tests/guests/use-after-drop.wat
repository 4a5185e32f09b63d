;; Uses the target after it was given back.
(func $run (param $target i32) (result i32)
  (call $drop-target (local.get $target))
  (call $facts (local.get $target) (i32.const 512))
  (call $finish))
