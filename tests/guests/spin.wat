;; Never ends its run.
(func $run (param $target i32) (result i32)
  (loop $again (br $again))
  unreachable)
